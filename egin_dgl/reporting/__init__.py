"""What a person looks at: bars while it runs, tables and pictures afterwards."""
