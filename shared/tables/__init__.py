"""Tables of CSV files and workbooks, and views of databases, as something that SQL can ask.

`loader` writes the rows of a file into one SQLite file per document version while the file is parsed
(`cell_values` types its columns), `cards` describes each table as a block that search finds, `table_files`
keeps file and catalog in blob storage, `table_cache` the files asked for on the disk. `readable_tables` finds
those that a person may read; `sql_worker` runs `queries` over them in the worker process that parses files,
behind the guard (`sql_guard`), and says in words what was calculated (`sql_words`). `databases` knows the
databases of the settings; `postgres` asks one what the guard let through.

Pure: cards, cell_values, models, sql_words.
"""
