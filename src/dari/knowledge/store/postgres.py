"""The store in PostgreSQL: any number of readers on any number of machines, one writer at a time.

`Database` owns the connections. A transaction that changes documents holds an advisory lock of its own session, so the
server itself keeps a second writer out, and lets go of the lock when a writer's session ends, however it ends.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dari.errors import Conflict, DariError, Denied, Failed, TimedOut, Unavailable
from dari.files.globs import glob_as_regex
from dari.knowledge.errors import ConfigInvalid, NotIndexed, ReadonlyMode, StoreLocked
from dari.knowledge.store import postgres_schema
from dari.knowledge.store.rows import SqlConnection, SqlCursor
from dari.knowledge.store.sql import ROWS_AT_ONCE, SqlStore
from dari.knowledge.store.sql_journal import SqlJournal
from dari.knowledge.store.sql_write import SqlTransaction
from dari.knowledge.store.store import WriteTransaction

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 10
WRITE_WAIT_S = 10.0
"""How long a transaction outside a writer's session waits for the lock."""
MIGRATION_WAIT_S = 10.0
LOOK_S = 0.5
"""A wait for the lock is made of statements that wait so long: between two of them it can be given up."""
_NETWORK = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Where the URL says nothing else: a peer that vanished without a word is noticed within a minute, not after hours."""
SCHEMES = ("postgresql", "postgres")
EF_SEARCH = 200
_SETUP = f"""{postgres_schema.SET_SEARCH_PATH},
  set_config('jit', 'off', false), set_config('work_mem', '64MB', false),
  set_config('plan_cache_mode', 'force_custom_plan', false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('hnsw.ef_search', ?, false), set_config('default_transaction_read_only', ?, false),
  set_config('lock_timeout', ?, false), set_config('client_min_messages', 'warning', false),
  set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
  set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '60000', false)
"""
_NO_LIMITS = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = ANY(?)"
_LIMITS_IN_TRANSACTION = ["idle_in_transaction_session_timeout", "transaction_timeout"]
"""A transaction waits while chunks are analysed."""
_LIMITS_OF_SESSION = ["statement_timeout", "idle_session_timeout"]
"""A writer is idle while files are parsed, and builds an index for minutes; a role may have limits meant for others."""


class PostgresConnection:
    """A connection of psycopg that takes `?` for a value, as SQLite does."""

    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.raw = raw

    @property
    def server_version(self) -> int:
        return self.raw.info.server_version

    @property
    def has_ended(self) -> bool:
        """Whether the server, or the network, has ended a session that is idle: nothing else is said to one unasked."""
        if self.raw.closed:
            return True
        heard = select.poll()
        heard.register(self.raw.fileno(), select.POLLIN)
        return self.raw.info.transaction_status == 0 and bool(heard.poll(0))

    def execute(self, sql: str, values: Sequence[Any] = ()) -> SqlCursor:
        return self.raw.execute(_translated(sql), _storable(values)) if values else self.raw.execute(sql.encode())

    def executemany(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            with self.raw.cursor() as cursor:
                cursor.executemany(_translated(sql), [_storable(row) for row in values])

    def attempt(self, sql: str, *refusals: type[psycopg.Error]) -> bool:
        """Inside a transaction: run it, or leave no trace where the server refuses it for one of these reasons."""
        try:
            with self.raw.transaction():
                self.raw.execute(sql.encode())
        except refusals:
            return False
        return True


class Database:
    """The connections of one process to one schema. Thread-safe; `close` ends all of them."""

    def __init__(self, url: str, schema: str = "kebab", *, is_readonly: bool = False) -> None:
        self.schema = schema
        self.is_readonly = is_readonly
        self.place = place_of(url, schema)
        self._url = url
        self._pool: list[PostgresConnection] = []
        self._writer: PostgresConnection | None = None
        self._writing = threading.RLock()
        self._holds_lock = False
        self._is_closed = False
        name = hashlib.blake2b(f"dari.knowledge/{schema}".encode(), digest_size=8).digest()
        self._lock_key = int.from_bytes(name, "big", signed=True)

    def close(self) -> None:
        self._is_closed = True
        self.drop_idle()
        with self._writing:
            writer, self._writer, self._holds_lock = self._writer, None, False
            if writer is not None:
                writer.raw.close()

    def drop_idle(self) -> None:
        while self._pool:
            self._pool.pop().raw.close()

    # Reading

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of one statement. A server that was started again in the meantime is asked once more."""
        had_idle = bool(self._pool)
        try:
            return self._rows(sql, values)
        except Unavailable:
            if not had_idle:  # a server that cannot be reached is waited for once
                raise
            self.drop_idle()
            return self._rows(sql, values)

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self.reading() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        with self._errors_named():
            connection = self._take()
            try:
                yield connection
            except BaseException:
                connection.raw.close()
                raise
            if self._is_closed:
                connection.raw.close()
            else:
                self._pool.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[PostgresConnection]:
        with self.reading() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def _take(self) -> PostgresConnection:
        while self._pool:
            try:
                connection = self._pool.pop()
            except IndexError:  # another thread was faster
                break
            if not connection.has_ended:
                return connection
            connection.raw.close()
        return self._connect(is_readonly=True)

    # Writing

    @contextmanager
    def changing(self) -> Iterator[PostgresConnection]:
        """A transaction that writes: committed at the end, rolled back by any exception."""
        if self.is_readonly:
            raise ReadonlyMode("the store is open read-only", "run it again without --readonly and KEBAB_READONLY")
        with self._writing, self._errors_named():
            connection = self._writer_session()
            with connection.raw.transaction():
                yield connection

    @contextmanager
    def changing_documents(self) -> Iterator[PostgresConnection]:
        """The same, by the one writer: in a session that holds the lock already, or that gets it in a moment."""
        import psycopg

        with self.changing() as connection:
            try:
                connection.execute("SELECT pg_advisory_xact_lock(?)", (self._lock_key,))
            except psycopg.errors.LockNotAvailable:
                raise self._locked(WRITE_WAIT_S) from None
            yield connection

    @contextmanager
    def lock(self, wait_s: float = 0.0, give_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Be the one writer. StoreLocked, with who is, when that takes longer than `wait_s`, or as soon as `give_up`
        says that waiting is in vain."""
        import psycopg

        if self.is_readonly:
            raise ReadonlyMode("the store is open read-only", "run it again without --readonly and KEBAB_READONLY")
        with self._writing, self._errors_named():
            if self._holds_lock:
                raise StoreLocked(f"this process writes to {self.place} already", "wait for it", pid=os.getpid())
            session = self._writer_session()
            if not self._gets_lock(session, wait_s, give_up):
                raise self._locked(0.0 if give_up() else wait_s)
            self._holds_lock = True
        try:
            yield
        finally:
            with self._writing, suppress(psycopg.Error):
                if self._holds_lock and self._writer is not None:
                    self._holds_lock = False
                    self._writer.execute("SELECT pg_advisory_unlock(?)", (self._lock_key,))

    def _gets_lock(self, session: PostgresConnection, wait_s: float, give_up: Callable[[], bool]) -> bool:
        import psycopg

        if session.execute("SELECT pg_try_advisory_lock(?)", (self._lock_key,)).fetchone()[0]:
            return True
        deadline_s = monotonic() + wait_s
        try:
            while (left_s := deadline_s - monotonic()) > 0 and not give_up():
                session.execute(f"SET lock_timeout = {max(1, round(min(left_s, LOOK_S) * 1000))}")
                with suppress(psycopg.errors.LockNotAvailable):
                    session.execute("SELECT pg_advisory_lock(?)", (self._lock_key,))
                    return True
            return False
        finally:
            if not session.raw.closed:
                session.execute(f"SET lock_timeout = {round(WRITE_WAIT_S * 1000)}")

    def _writer_session(self) -> PostgresConnection:
        if self._is_closed:
            raise RuntimeError("the store is closed")
        writer = self._writer
        # Without the lock a session is only a connection: one that ended while it was idle is replaced.
        if writer is not None and (writer.raw.closed or (not self._holds_lock and writer.has_ended)):
            writer.raw.close()
            self._writer = None
            if self._holds_lock:
                self._holds_lock = False
                raise Conflict(
                    f"the connection to {self.place} broke, and with it the writer's lock",
                    "run it again: what was committed is kept",
                )
        if self._writer is None:
            self._writer = self._connect(is_readonly=False)
        return self._writer

    def _locked(self, wait_s: float) -> StoreLocked:
        sql = (
            "SELECT a.application_name, a.usename FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
            " WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database"
            " WHERE datname = current_database()) AND (l.classid::bigint << 32 | l.objid::bigint) = ?"
        )
        found = self._rows(sql, (self._lock_key,))
        holder = f"{found[0][0]} as {found[0][1]}" if found else "it ended just now"
        own = f"kebab {socket.gethostname()} "
        pid = found[0][0].removeprefix(own) if found else ""
        waited = f" after {wait_s:g} s" if wait_s > 0 else ""
        return StoreLocked(
            f"another process writes to {self.place}{waited}: {holder}",
            "wait for it with --wait, or end it; search works meanwhile",
            pid=int(pid) if pid.isdigit() else 0,
        )

    # Connecting

    def _connect(self, *, is_readonly: bool) -> PostgresConnection:
        import psycopg

        name = f"kebab {socket.gethostname()[:40]} {os.getpid()}"
        options: dict[str, Any] = {"application_name": name, "client_encoding": "utf8"}
        options |= {name: value for name, value in _NETWORK.items() if f"{name}=" not in self._url}
        try:
            raw = psycopg.connect(self._url, autocommit=True, **options)
        except (psycopg.ProgrammingError, UnicodeError):  # UnicodeError: a host that no name server knows, such as a..b
            raise ConfigInvalid(
                "[store] url must be a URL that PostgreSQL understands",
                "such as postgresql://user@host:5432/database?sslmode=require",
            ) from None
        except psycopg.OperationalError as error:
            raise self._not_connected(error) from None
        wait = f"{round(WRITE_WAIT_S * 1000)}ms"
        connection = PostgresConnection(raw)
        try:
            connection.execute(_SETUP, (self.schema, str(EF_SEARCH), "on" if is_readonly else "off", wait))
            lifted = _LIMITS_IN_TRANSACTION if is_readonly else _LIMITS_IN_TRANSACTION + _LIMITS_OF_SESSION
            connection.execute(_NO_LIMITS, (lifted,))
        except BaseException:
            raw.close()
            raise
        return connection

    def _not_connected(self, error: psycopg.OperationalError) -> DariError:
        said = self._redacted(str(error))
        if "too many" in said or "connection slots" in said:
            return Unavailable(
                f"{self.place} takes no more connections: {_last_line(said)}",
                "try again, or raise max_connections, or the limit of the role, on the server",
            )
        if "password" in said or "authentication" in said or "role " in said:
            return Denied(
                f"{self.place} refuses the login: {_last_line(said)}",
                "check the user and password: in the URL, in ~/.pgpass (mode 0600), or in PGPASSWORD",
            )
        if "database" in said and "does not exist" in said:
            return Unavailable(f"{self.place}: {_last_line(said)}", "make it: createdb NAME, or correct [store] url")
        return Unavailable(
            f"{self.place} cannot be reached: {_last_line(said)}",
            "start the server, or correct [store] url or KEBAB_STORE_URL",
        )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """psycopg's errors as ours, without the password."""
        import psycopg

        kinds = psycopg.errors
        try:
            yield
        except (kinds.UndefinedTable, kinds.InvalidSchemaName):
            raise NotIndexed(f"nothing is indexed in {self.place} yet", "kebab ingest") from None
        except kinds.InsufficientPrivilege as error:
            raise Denied(
                f"{self.place}: {self._redacted(_first_line(error))}",
                f'GRANT ALL ON SCHEMA "{self.schema}" TO the role',
            ) from None
        except kinds.ReadOnlySqlTransaction as error:
            raise ReadonlyMode(
                f"{self.place}: {_first_line(error)}", "name the primary server, not a replica"
            ) from None
        except kinds.DiskFull as error:
            raise Failed(f"{self.place}: the server's disk is full: {_first_line(error)}", "free some space") from None
        except kinds.QueryCanceled as error:
            raise TimedOut(
                f"{self.place}: {self._redacted(_first_line(error))}",
                "ask for less, or raise the role's limit on the server: ALTER ROLE … SET statement_timeout = '1min'",
            ) from None
        except (kinds.LockNotAvailable, kinds.DeadlockDetected) as error:
            raise Conflict(
                f"{self.place}: another session has a table of the store locked: {_first_line(error)}",
                "try again when it has ended: a backup or maintenance may run",
            ) from None
        except (kinds.OutOfMemory, kinds.ProgramLimitExceeded) as error:
            raise Failed(f"{self.place}: {self._redacted(_first_line(error))}", "kebab doctor says more") from error
        except psycopg.OperationalError as error:
            raise Unavailable(
                f"the connection to {self.place} broke: {self._redacted(_first_line(error))}",
                "check the server, then run it again: what was committed is kept",
            ) from None
        except psycopg.Error as error:
            raise Failed(f"{self.place}: {self._redacted(_first_line(error))}", "kebab doctor says more") from error

    def _redacted(self, text: str) -> str:
        secrets = (password_of(self._url), os.environ.get("PGPASSWORD", ""))
        for secret in {form for one in secrets if one for form in (one, quote(one, safe=""))}:
            text = text.replace(secret, "<redacted>")
        return text


class PostgresStore(SqlStore):
    """`Store` over a `Database`; `open_store` and `make_store` make one."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.journal = SqlJournal(database.changing, self._rows)

    @property
    def is_readonly(self) -> bool:
        return self.database.is_readonly

    def close(self) -> None:
        """The database stays open for who opened it."""
        self.database.drop_idle()

    @contextmanager
    def write(self) -> Iterator[WriteTransaction]:
        with self.database.changing_documents() as connection:
            yield _Transaction(connection, self.database.schema)

    def _reading(self) -> Any:
        return self.database.reading()

    def _snapshot(self) -> Any:
        return self.database.snapshot()

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self.database.rows(sql, *values)

    def _row(self, sql: str, *values: Any) -> Any:
        return next(iter(self.database.rows(sql, *values)), None)

    def _stream(self, connection: PostgresConnection, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        with connection.raw.cursor(name="changes") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            yield from cursor.execute(_translated(sql), values)

    def _match_glob(self, glob: str) -> tuple[str, str]:
        return "d.path ~ ?", glob_as_regex(glob)

    def _store_bytes(self, connection: SqlConnection) -> int:
        sql = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r' AND c.relname !~ ?"
        )
        row = connection.execute(sql, (self.database.schema, "^(lexical|vectors)_"))
        size: int = row.fetchone()[0]
        return size


class _Transaction(SqlTransaction):
    def __init__(self, connection: PostgresConnection, schema: str) -> None:
        super().__init__(connection)
        self._schema = schema

    def delete_vectors(self, model_key: str = "") -> None:
        sql = "SELECT model_no FROM vector_models WHERE ? = '' OR model_key = ?"
        for (number,) in self._db.execute(sql, (model_key, model_key)).fetchall():
            self._db.execute(f"DROP TABLE IF EXISTS {vectors_table(self._schema, number)}")
        super().delete_vectors(model_key)

    def _next_chunk_no(self) -> int:
        return int(self._one("SELECT value FROM kv WHERE key = 'last_chunk_no'")) + 1

    def _note_last_chunk_no(self, number: int) -> None:
        self._db.execute("UPDATE kv SET value = ? WHERE key = 'last_chunk_no'", (str(number),))


def open_store(database: Database) -> PostgresStore:
    """The store that is there; one of an older version is migrated under the writer lock."""
    with database.reading() as connection:
        version = postgres_schema.version_of(connection, database.schema, database.place)
    postgres_schema.check_version(version, database.place)
    if version < len(postgres_schema.MIGRATIONS):
        if database.is_readonly:
            raise ReadonlyMode(
                f"{database.place} has store version {version}, reading needs {len(postgres_schema.MIGRATIONS)}",
                "run `kebab doctor` once without --readonly: it brings the store to this version",
            )
        with database.lock(MIGRATION_WAIT_S):
            make_store(database)
    return PostgresStore(database)


def make_store(database: Database) -> PostgresStore:
    """Make or migrate the store, all of it or nothing."""
    with database.changing_documents() as connection:
        postgres_schema.make_or_migrate(connection, database.schema, database.place)
    database.drop_idle()  # they do not know of an extension that was just made
    return PostgresStore(database)


def vectors_table(schema: str, model_no: int) -> str:
    """The table of a model's vectors; it is there from its first vector on."""
    return f'"{schema}".vectors_{model_no}'


def place_of(url: str, schema: str) -> str:
    """Server and database, without the user, the password and the options."""
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in SCHEMES:
        raise ConfigInvalid(
            f"[store] url must begin with postgresql://, got {scheme or 'no scheme'!r}",
            "such as postgresql://user@host:5432/database",
        )
    parts = _parts_of(url)
    hosts, ports = parts.get("host", "").split(","), parts.get("port", "").split(",")
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    shown = [
        f"{f'[{host}]' if ':' in host else host}{':' if port else ''}{port}"
        for host, port in zip(hosts, ports, strict=True)
    ]
    return f"postgresql://{','.join(shown)}/{parts.get('dbname', '')} (schema {schema})"


def password_of(url: str) -> str:
    """The password in the URL, wherever in it; empty without one."""
    return _parts_of(url).get("password", "")


def _parts_of(url: str) -> dict[str, str]:
    """The URL as the client library reads it: to that, unlike to `urlsplit`, a password may hold `#` or `?`."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:  # its message may hold a part of the URL
        raise ConfigInvalid(
            "[store] url must be a URL that PostgreSQL understands",
            "such as postgresql://user@host:5432/database?sslmode=require",
        ) from None
    has_odd_port = not parts.get("port", "").replace(",", "0").isdigit() and bool(parts.get("port"))
    has_odd_name = "@" in parts.get("dbname", "") and "%40" not in url
    if "@" in parts.get("host", "") or has_odd_port or has_odd_name:  # the rest of a password, taken for the server
        raise ConfigInvalid(
            "[store] url must name a host and a port after the password, and PostgreSQL reads something else there",
            "write @ as %40, / as %2F and : as %3A in the password, or keep it in ~/.pgpass",
        )
    return parts


@lru_cache(maxsize=512)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _storable(values: Sequence[Any]) -> list[Any]:
    """PostgreSQL's text cannot hold NUL."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value for value in values]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip() if text.strip() else "no reason was given"
