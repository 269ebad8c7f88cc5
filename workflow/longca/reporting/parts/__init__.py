"""Parts of the report: a file each here, a template of the same id each; registry.py lists them in their order."""
