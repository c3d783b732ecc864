"""SQL access to the tables in CSV files and workbooks, and to database views.

`loader` writes a file's rows to one SQLite file per document version during parsing (`cell_values` infers
column types, `headers` joins the rows of a header, `units` finds units), `cards` describes each table as a
searchable block, `table_files` stores the file and its catalog in blob storage, and `table_cache` caches
files on disk. `readable_tables` finds the tables that a person may read. `sql_worker` runs `queries` in the
parser's worker process, behind `sql_guard`; `sql_words` describes a query in words. `databases` lists the
configured databases; `postgres` runs the queries that the guard accepts.

Pure: cards, cell_values, headers, models, sql_words, units.
"""
