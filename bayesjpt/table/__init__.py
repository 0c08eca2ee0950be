"""The entry point for data frames: `table` holds the cells, `schema` what each column is, `resolution` its grid."""
