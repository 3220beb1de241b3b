"""What is particular to the store in PostgreSQL: logins, versions, rights, the lock, sessions that end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from dari.errors import Conflict, DariError, Denied, TimedOut, Unavailable
from dari.knowledge.config import StoreSettings
from dari.knowledge.errors import ConfigInvalid, NotIndexed, ReadonlyMode, StoreLocked, StoreNewer
from dari.knowledge.postgres_backend import PostgresBackend
from dari.knowledge.store import postgres, postgres_schema
from dari.knowledge.store.postgres import Database, make_store, open_store
from tests.support.knowledge_documents import document, passages, put
from tests.support.postgres_server import PASSWORD, fresh_schema
from tests.support.waiting import PATIENCE_S, wait_until

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.xdist_group("postgres")
Connect = Callable[..., Database]


@pytest.fixture
def connect(postgres_url: str) -> Iterator[Connect]:
    """Opens the database of this test as another process would; `url` and `schema` may be others."""
    name, opened = fresh_schema(), []

    def connect(url: str = postgres_url, schema: str = name, **options: bool) -> Database:
        opened.append(Database(url, schema, **options))
        return opened[-1]

    yield connect
    for database in opened:
        database.close()


def end_session_of(database: Database, by: Database) -> None:
    """As a server that is stopped, or a network that breaks, ends it."""
    assert database._writer is not None
    by.rows("SELECT pg_terminate_backend(?, 10000)", database._writer.raw.info.backend_pid)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (PASSWORD, "wrong-Pa55", Denied),
        ("/postgres", "/no_such_database", Unavailable),
        ("kebab:", "nobody:", Denied),
        (":{port}/", ":1/", Unavailable),
        ("127.0.0.1", "no-such-host.invalid", Unavailable),
        ("/postgres", "/postgres?colour=red", ConfigInvalid),
        ("postgresql://", "mysql://", ConfigInvalid),
    ],
)
def test_a_login_that_fails_says_why_and_never_shows_the_password(
    postgres_url: str, connect: Connect, old: str, new: str, expected: type[DariError]
) -> None:
    port = postgres_url.rpartition(":")[2].partition("/")[0]
    url = postgres_url.replace(old.format(port=port), new)
    with pytest.raises(expected) as caught:
        open_store(connect(url))
    shown = f"{caught.value!r} {caught.value.message} {caught.value.hint} {caught.value.__cause__}"
    assert PASSWORD not in shown
    assert "wrong-Pa55" not in shown
    assert caught.value.hint


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://bob:pa#Sec@db/kb", "postgresql://db/kb (schema s)"),
        ("postgresql://bob:pa?Sec@db:99/kb?sslmode=require", "postgresql://db:99/kb (schema s)"),
        ("postgresql://db/kb?user=bob&password=paSec", "postgresql://db/kb (schema s)"),
        ("postgres://bob:paSec@a:1,b:2/kb", "postgresql://a:1,b:2/kb (schema s)"),
        ("postgresql://bob:paSec@[::1]:5/kb", "postgresql://[::1]:5/kb (schema s)"),
        ("postgresql:///kb?host=/run/pg&password=paSec", "postgresql:///run/pg/kb (schema s)"),
    ],
)
def test_the_place_is_what_the_client_library_reads_without_the_password(url: str, shown: str) -> None:
    database = Database(url, "s")
    assert database.place == shown
    secret = postgres.password_of(url)
    assert secret.endswith("Sec")
    assert database._redacted(f"no {secret} here") == "no <redacted> here"


@pytest.mark.parametrize(
    "url", ["postgresql://bob:pa@Sec@db/kb", "postgresql://bob:pa/Sec@db/kb", "postgresql://bob:12/Sec@db/kb"]
)
def test_a_password_that_must_be_escaped_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        Database(url, "s")
    assert "Sec" not in f"{caught.value!r} {caught.value.message} {caught.value.hint}"
    assert "%40" in caught.value.hint


def test_a_password_in_the_environment_is_used(
    postgres_url: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    database = connect(postgres_url.replace(f":{PASSWORD}", ""))
    assert put(make_store(database), "a.md", "a").doc_no == 1


def test_the_url_decides_on_tls(postgres_url: str, connect: Connect) -> None:
    with pytest.raises(Unavailable, match="SSL"):  # this server has none
        open_store(connect(f"{postgres_url}?sslmode=require"))


def test_nothing_to_read_names_the_command_that_ingests(connect: Connect) -> None:
    with pytest.raises(NotIndexed) as caught:
        open_store(connect())
    assert "kebab ingest" in caught.value.hint


def test_a_store_of_a_newer_version_is_refused_by_readers_and_writers(connect: Connect) -> None:
    database = connect()
    make_store(database)
    with database.changing() as connection:
        connection.execute("UPDATE kv SET value = '99' WHERE key = 'store_version'")
    for opener in (open_store, make_store):
        with pytest.raises(StoreNewer) as caught:
            opener(connect())
        assert caught.value.details == {"store_version": 99, "supported": len(postgres_schema.MIGRATIONS)}


def test_an_older_server_is_refused(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_schema, "MIN_SERVER", 990000)
    with pytest.raises(Unavailable, match="15 or newer"):
        make_store(connect())


def test_a_missing_extension_names_the_statement_that_makes_it(postgres_url: str, connect: Connect) -> None:
    name = fresh_schema()
    with connect().reading() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
    url = postgres_url.replace("kebab:", f"{name}:").replace("/postgres", f"/{name}")
    with pytest.raises(Unavailable, match="pgvector") as caught:
        make_store(connect(url))
    assert "CREATE EXTENSION vector" in caught.value.hint
    with connect(postgres_url.replace("/postgres", f"/{name}")).changing() as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    put(make_store(connect(url)), "a.md", "a")  # an ordinary role is enough from then on


def test_a_read_only_store_reads_and_refuses_every_write(connect: Connect) -> None:
    put(make_store(connect()), "a.md", "a")
    store = open_store(connect(is_readonly=True))
    assert store.document_by_path("a.md") is not None
    with pytest.raises(ReadonlyMode), store.write():
        pass
    with pytest.raises(ReadonlyMode):
        store.journal.put_turn("s", "q", "q", "{}")


def test_a_second_writer_is_refused_with_the_one_that_holds_the_lock(connect: Connect) -> None:
    first, second = connect(), connect()
    make_store(first)
    with first.lock():
        with pytest.raises(StoreLocked) as caught, second.lock():
            pass
        assert caught.value.details == {"pid": os.getpid()}
        with pytest.raises(StoreLocked), second.lock(wait_s=0.05):
            pass
        with pytest.raises(StoreLocked), first.lock():
            pass
    with second.lock():
        pass


def test_the_server_keeps_out_a_write_while_another_session_is_the_writer(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WRITE_WAIT_S", 0.05)
    first, second = connect(), connect()
    store, other = make_store(first), make_store(second)
    with first.lock():
        put(store, "a.md", "a")
        with pytest.raises(StoreLocked):
            put(other, "b.md", "b")
        other.journal.put_turn("s", "q", "q", "{}")  # the journal needs no lock
        assert other.document_by_path("a.md") is not None
    put(other, "b.md", "b")


def test_a_writer_whose_session_ended_has_lost_the_lock_and_writes_nothing(connect: Connect) -> None:
    first, second = connect(), connect()
    store = make_store(first)
    with first.lock():
        end_session_of(first, second)
        with second.lock(wait_s=10):
            with pytest.raises(Unavailable):
                put(store, "a.md", "a")
            with pytest.raises(Conflict):
                put(store, "a.md", "a")
    assert store.document_by_path("a.md") is None


def test_a_transaction_whose_session_ends_leaves_nothing(connect: Connect) -> None:
    first, second = connect(), connect()
    store = make_store(first)
    with pytest.raises(Unavailable), store.write() as transaction:
        transaction.put_document(document("a.md"), passages("a.md", ["a"]))
        end_session_of(first, second)
        transaction.set_kv("x", "y")
    assert store.revision() == 0
    put(store, "b.md", "b")  # by a new session


def test_readers_go_on_after_the_server_ended_their_sessions(connect: Connect) -> None:
    first, second = connect(), connect()
    store = make_store(first)
    put(store, "a.md", "a")
    assert store.revision() == 1
    second.rows("SELECT pg_terminate_backend(?)", first._pool[0].raw.info.backend_pid)
    assert store.revision() == 1


def test_a_nul_in_a_text_is_replaced(connect: Connect) -> None:
    store = make_store(connect())
    result = put(store, "a.md", "a\0b", title="t\0")
    assert store.chunks_of(result.doc_no)[0].text == "a\ufffdb"


def test_two_schemas_of_one_database_are_two_stores(connect: Connect) -> None:
    one, other = make_store(connect()), make_store(connect(schema=fresh_schema()))
    put(one, "a.md", "a")
    assert other.document_by_path("a.md") is None
    with one.database.lock(), other.database.lock():
        put(other, "b.md", "b")


@pytest.fixture
def fresh_url(postgres_url: str, connect: Connect) -> str:
    """A database of its own, without pgvector."""
    name = fresh_schema()
    with connect().reading() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres", f"/{name}")


def test_tables_of_the_public_schema_are_not_the_store_of_another_schema(fresh_url: str, connect: Connect) -> None:
    public = make_store(connect(fresh_url, "public"))
    put(public, "theirs.md", "a")
    with public.database.changing() as connection:
        connection.execute("CREATE TABLE vectors_1 (chunk_no BIGINT PRIMARY KEY, vector vector(2) NOT NULL)")
        connection.execute("INSERT INTO vectors_1 VALUES (1, '[1,0]')")
    with closing(PostgresBackend(StoreSettings(url=fresh_url, schema="team2"))) as backend:
        assert not backend.exists()
        assert backend.signature() == ()
        assert backend.count_documents() == 0
        with pytest.raises(NotIndexed):
            backend.open_store()
        store = backend.make_store()
        assert store.document_by_path("theirs.md") is None
        chunk_no = put(store, "ours.md", "b").added[0].chunk_no
        vectors = backend.open_vectors("model", 2, 0, writable=True)
        assert vectors.append([chunk_no], np.array([[0, 1]], np.float32)) == 1
        vectors.refresh(0)
        assert vectors.search(np.array([0, 1], np.float32), 5) == [(chunk_no, 1.0)]
        with store.write() as transaction:
            transaction.delete_vectors()
            transaction.delete_vectors()
    assert public.database.rows("SELECT chunk_no FROM public.vectors_1") == [(1,)]
    assert [one.path for one in public.list_documents()] == ["theirs.md"]


def test_a_fresh_database_takes_vectors_in_the_session_that_made_the_extension(
    fresh_url: str, connect: Connect
) -> None:
    database = connect(fresh_url)
    assert database.rows("SHOW search_path") == [(database.schema,)]
    make_store(database)
    with database.changing() as connection:
        assert connection.execute("SELECT '[1,2]'::vector::text").fetchone() == ("[1,2]",)
    assert database.rows("SELECT '[1,2]'::vector::text") == [("[1,2]",)]


def test_public_is_left_out_where_the_extension_has_a_schema_of_its_own(fresh_url: str, connect: Connect) -> None:
    with connect(fresh_url).changing() as connection:
        connection.execute("CREATE SCHEMA extensions")
        connection.execute("CREATE EXTENSION vector SCHEMA extensions")
    database = connect(fresh_url)
    make_store(database)
    assert database.rows("SHOW search_path") == [(f"{database.schema}, extensions",)]
    assert database.rows("SELECT '[1,2]'::vector::text") == [("[1,2]",)]


def test_a_reset_leaves_the_tables_of_others_alone(connect: Connect) -> None:
    database = connect()
    make_store(database)
    schema = database.schema
    with database.changing_documents() as connection:
        connection.execute(f'CREATE TABLE "{schema}".vectors_backup_2024 (n INT)')
        connection.execute(f'CREATE TABLE "{schema}".vectors_1 (n INT)')
        postgres_schema.drop_tables(connection, schema)
        left = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = ?", (schema,)).fetchall()
    assert left == [("vectors_backup_2024",)]


def test_a_schema_of_another_program_is_not_reset(connect: Connect) -> None:
    database = connect()
    make_store(database)
    with database.changing_documents() as connection:
        connection.execute(f"DELETE FROM \"{database.schema}\".kv WHERE key = 'store_id'")
        with pytest.raises(Conflict):
            postgres_schema.drop_tables(connection, database.schema)


def test_a_wait_for_the_writer_ends_as_soon_as_it_is_given_up(connect: Connect) -> None:
    first, second, stopped = connect(), connect(), threading.Event()
    make_store(first)

    def wait() -> None:
        with second.lock(3600, stopped.is_set):
            pass

    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as threads, first.lock():
        waiting = threads.submit(wait)
        wait_until(lambda: first.rows(waits)[0][0] or waiting.done())
        stopped.set()
        with pytest.raises(StoreLocked):
            waiting.result(PATIENCE_S)
    with second.lock():
        pass


def test_an_answer_is_kept_after_the_server_ended_the_idle_session(connect: Connect) -> None:
    first, second = connect(), connect()
    store = make_store(first)
    store.journal.put_turn("s", "one", "one", "{}")
    end_session_of(first, second)
    store.journal.put_turn("s", "two", "two", "{}")
    assert [turn.question for turn in store.journal.turns("s")] == ["one", "two"]


def test_a_snapshot_is_read_after_the_server_ended_the_idle_session(connect: Connect) -> None:
    first, second = connect(), connect()
    store = make_store(first)
    put(store, "a.md", "a")
    assert store.revision() == 1
    second.rows("SELECT pg_terminate_backend(?, 10000)", first._pool[0].raw.info.backend_pid)
    assert store.stats().doc_count == 1


def test_limits_of_time_that_a_role_has_do_not_end_its_writer(postgres_url: str, connect: Connect) -> None:
    limits = ("statement_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout")
    database = connect(f"{postgres_url}?options={''.join(f'-c%20{name}%3D1000%20' for name in limits)}")
    make_store(database)
    with database.changing() as connection:
        connection.execute("SELECT pg_sleep(1.2)")
        assert [connection.execute(f"SHOW {name}").fetchone()[0] for name in limits] == ["0", "0", "0"]


def test_a_search_that_the_server_ends_says_so_and_is_not_tried_twice(postgres_url: str, connect: Connect) -> None:
    database = connect(f"{postgres_url}?options=-c%20statement_timeout%3D1000")
    with pytest.raises(TimedOut, match="statement timeout") as caught:
        database.rows("SELECT pg_sleep(60)")
    assert "statement_timeout" in caught.value.hint


def test_a_table_that_another_session_has_locked_is_no_broken_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WRITE_WAIT_S", 0.05)
    first, second = connect(), connect()
    store = make_store(first)
    make_store(second)
    with second.changing() as connection:
        connection.execute("LOCK TABLE kv IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Conflict, match="locked"):
            store.revision()


def test_a_peer_that_vanished_is_noticed_by_both_ends_within_a_minute(postgres_url: str, connect: Connect) -> None:
    database = connect()
    assert database.rows("SHOW tcp_keepalives_idle") == [("30",)]
    assert database._pool[0].raw.info.get_parameters()["keepalives_idle"] == "30"
    own = connect(f"{postgres_url}?keepalives_idle=7")
    own.rows("SELECT 1")
    assert own._pool[0].raw.info.get_parameters()["keepalives_idle"] == "7"


def test_a_server_without_a_free_connection_is_not_a_refused_login(postgres_url: str, connect: Connect) -> None:
    name = fresh_schema()
    with connect().changing() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 1")
    url = postgres_url.replace("kebab:", f"{name}:")
    connect(url).rows("SELECT 1")
    with pytest.raises(Unavailable, match="no more connections"):
        connect(url).rows("SELECT 1")


def test_a_host_that_no_name_server_can_know_is_a_fault_of_the_configuration(connect: Connect) -> None:
    with pytest.raises((ConfigInvalid, Unavailable)):
        connect(f"postgresql://bob@{'a' * 70}..b/kb").rows("SELECT 1")


def test_a_role_with_rights_on_the_schema_alone_is_enough(fresh_url: str, connect: Connect) -> None:
    owner, name = connect(fresh_url), fresh_schema()
    with owner.changing() as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f'CREATE SCHEMA "{owner.schema}"')
        connection.execute(f'GRANT ALL ON SCHEMA "{owner.schema}" TO {name}')
    store = make_store(connect(fresh_url.replace("kebab:", f"{name}:")))
    assert put(store, "a.md", "a").doc_no == 1


def test_a_database_without_the_schema_public_names_the_statement_that_makes_the_extension(
    fresh_url: str, connect: Connect
) -> None:
    database = connect(fresh_url)
    with database.changing() as connection:
        connection.execute("DROP SCHEMA public")
    with pytest.raises(Unavailable, match="pgvector") as caught:
        make_store(database)
    assert "CREATE EXTENSION vector" in caught.value.hint


def test_a_database_that_is_not_in_utf8_is_refused_before_anything_is_stored(
    postgres_url: str, connect: Connect
) -> None:
    name = fresh_schema()
    with connect().reading() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    database = connect(postgres_url.replace("/postgres", f"/{name}"))
    with pytest.raises(Unavailable, match="LATIN1"):
        make_store(database)
    assert database.rows("SELECT to_regnamespace(?)", database.schema) == [(None,)]
