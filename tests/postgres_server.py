"""Debian's PostgreSQL for tests, started on loopback in a temporary folder by a user without privileges."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from shared.platform.database_sources import DatabaseSource
from tests.free_ports import find_free_port

SECRET = "secret-4711"
SHOP = f"""
CREATE TABLE public.secret (word text);
INSERT INTO public.secret VALUES ('{SECRET}');
CREATE TABLE public.sales (region text, ordered date, amount numeric(12, 2), paid boolean);
INSERT INTO public.sales
SELECT (ARRAY['Harbour', 'Meadow', 'Quarry'])[1 + i % 3], date '2025-01-01' + i, i * 1.5, i % 2 = 0
FROM generate_series(1, 120) i;
CREATE SCHEMA reporting;
CREATE VIEW reporting.orders AS SELECT * FROM public.sales;
COMMENT ON VIEW reporting.orders IS 'Orders of the quay shop';
COMMENT ON COLUMN reporting.orders.amount IS 'in EUR, without tax';
CREATE FUNCTION public.may_show(text) RETURNS boolean LANGUAGE plpgsql COST 10000
AS $$BEGIN RETURN $1 = 'shown'; END$$;
CREATE VIEW reporting.some AS SELECT word FROM public.secret WHERE public.may_show(word);
CREATE ROLE groundwork LOGIN;
ALTER ROLE groundwork SET standard_conforming_strings = off;
GRANT USAGE ON SCHEMA reporting TO groundwork;
GRANT SELECT ON reporting.orders, reporting.some TO groundwork;
"""


@contextmanager
def postgres_shop(access: tuple[str, ...]) -> Iterator[DatabaseSource]:
    """Yield a database with the orders of a shop. Skip the test if PostgreSQL isn't installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("PostgreSQL is not installed")
    folder, port = Path(tempfile.mkdtemp(prefix="groundwork-postgres-")), find_free_port()
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    if user:
        shutil.chown(folder, user)
    data = folder / "data"
    try:
        prepared: list[str | Path] = [
            folders[-1] / "initdb",
            "-D",
            data,
            "-U",
            "owner",
            "--auth=trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(prepared, check=True, capture_output=True, user=user, cwd=folder)
        place: list[str | Path] = ["-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [folders[-1] / "postgres", *place], stdout=log, stderr=log, user=user, cwd=folder
            )
        try:
            with _owner(server, port) as owner:
                owner.execute(SHOP.encode())
                owner.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
            yield DatabaseSource(
                name="shop",
                host="127.0.0.1",
                port=port,
                database="postgres",
                user="groundwork",
                password="any",
                views=("reporting.orders",),
                access=access,
            )
        finally:
            server.terminate()
            server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner(server: "subprocess.Popen[bytes]", port: int) -> "psycopg.Connection[tuple[object, ...]]":
    """Return a connection of the database owner as soon as the server accepts one."""
    while True:
        try:
            return psycopg.connect(
                host="127.0.0.1", port=port, dbname="postgres", user="owner", autocommit=True
            )
        except psycopg.OperationalError:
            assert server.poll() is None, "PostgreSQL ended"
            time.sleep(0.2)
