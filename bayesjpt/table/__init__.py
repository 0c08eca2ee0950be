"""The only door for data frames: `table` holds the cells, `schema` what each column is, `resolution` its grid."""
