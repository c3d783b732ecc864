"""Tables of CSV files and workbooks, as something that SQL can ask.

`loader` writes the rows of a file into one SQLite file per document version while the file is parsed
(`cell_values` types its columns), `cards` describes each table as a block that search finds, `table_files`
keeps file and catalog in blob storage. `card_search` finds the tables that a person may read; `engine` has
SQL run over them in a worker process (`sql_worker`), behind the guard (`sql_guard`).

Pure: cards, cell_values, models.
"""
