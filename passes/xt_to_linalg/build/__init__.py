"""What converters read and build with: values as views, dims, types, scalar code; the table of converters."""
