"""Trustworthy measurement of long-context attention."""
