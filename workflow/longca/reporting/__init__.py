"""Reporting: from records to tables, figures and one report. Nothing here measures."""
