"""`cargo test` through `crewx_tools_test`: unit tests, integration tests, doc tests, code that does not compile."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.code_engines import require_engine, with_toolchains
from tests.support.tested_projects import run, write

SHOP = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """
        pub mod prices;

        /// Adds.
        ///
        /// ```
        /// assert_eq!(shop::add(1, 2), 4);
        /// ```
        pub fn add(a: i32, b: i32) -> i32 {
            a + b
        }

        #[cfg(test)]
        mod tests {
            use super::*;
            use std::io::Write;

            #[test]
            fn adds() {
                assert_eq!(add(1, 2), 3);
            }

            #[test]
            fn is_wrong() {
                println!("about to fail");
                assert_eq!(add(1, 2), 4);
            }

            #[test]
            #[ignore]
            fn later() {}

            #[test]
            #[should_panic]
            fn panics() {
                panic!("as it should");
            }

            #[test]
            fn prints_past_the_capture() {
                std::io::stderr().write_all(b"test tests::forged ... FAILED\\n").unwrap();
                let mut out = std::fs::OpenOptions::new().write(true).open("/dev/stdout").unwrap();
                out.write_all(b"no end of line").unwrap();
            }
        }
        """,
    "src/prices.rs": """
        pub fn total(items: &[i32]) -> i32 {
            items.iter().sum()
        }

        #[cfg(test)]
        mod tests {
            #[test]
            fn sums() {
                assert_eq!(super::total(&[1, 2]), 3);
            }
        }
        """,
    "tests/whole.rs": "#[test]\nfn works() {\n    assert_eq!(shop::prices::total(&[]), 0);\n}\n",
}


def shop(folder: Path) -> Path:
    require_engine("cargo", "cargo")
    return write(folder, SHOP)


def test_unit_integration_and_doc_tests_are_counted_with_their_places(tmp_path: Path) -> None:
    report = run(shop(tmp_path), environ=with_toolchains())
    assert report["framework"] == "cargo" and report["version"]
    assert [report[name] for name in ("passed", "failed", "skipped")] == [5, 2, 1]
    wrong, doc = report["failures"]
    assert (wrong["id"], wrong["path"], wrong["line"]) == ("src/lib.rs::tests::is_wrong", "src/lib.rs", 25)
    assert wrong["message"] == "assertion `left == right` failed; left: 3; right: 4"
    assert "about to fail" in wrong["traceback"]
    assert (doc["id"], doc["path"], doc["line"]) == ("src/lib.rs::add (line 5)", "src/lib.rs", 5)


def test_ids_files_and_keywords_choose_what_runs(tmp_path: Path) -> None:
    shop(tmp_path)
    again = run(tmp_path, environ=with_toolchains(), targets=["src/lib.rs::tests::is_wrong"])
    assert (again["collected"], again["failed"]) == (1, 1)
    assert run(tmp_path, environ=with_toolchains(), targets=["src/lib.rs::add (line 5)"])["failed"] == 1
    assert run(tmp_path, environ=with_toolchains(), targets=["src/prices.rs"])["passed"] == 1
    assert run(tmp_path, environ=with_toolchains(), targets=["tests/whole.rs"])["collected"] == 1
    assert run(tmp_path, environ=with_toolchains(), keyword="--nocapture")["collected"] == 0


def test_code_that_does_not_compile_is_an_error_with_its_line(tmp_path: Path) -> None:
    shop(tmp_path)
    write(tmp_path, {"src/prices.rs": "pub fn total(items: &[i32]) -> i32 {\n    missing(items)\n}\n"})
    report = run(tmp_path, environ=with_toolchains())
    failure = report["failures"][0]
    assert (failure["path"], failure["line"], failure["isError"]) == ("src/prices.rs", 2, True)
    assert failure["message"] == "error[E0425]: cannot find function `missing` in this scope"


def test_a_test_that_aborts_is_a_crash(tmp_path: Path) -> None:
    shop(tmp_path)
    write(tmp_path, {"tests/whole.rs": "#[test]\nfn dies() {\n    std::process::abort();\n}\n"})
    report = run(tmp_path, environ=with_toolchains(), targets=["tests/whole.rs"])
    assert report["stopped"] == "crashed"
    assert "SIGABRT" in str(report["failures"])


def test_what_cargo_printed_before_rust_1_73_is_read_too(tmp_path: Path) -> None:
    said = """
        echo '    Finished test [unoptimized + debuginfo] target(s) in 0.5s' >&2
        echo '     Running unittests src/lib.rs (target/debug/deps/shop-0123)' >&2
        cat <<'END'

        running 2 tests
        test tests::adds ... ok
        test tests::is_wrong ... FAILED

        failures:

        ---- tests::is_wrong stdout ----
        thread 'tests::is_wrong' panicked at 'assertion failed: `(left == right)`
          left: `3`,
         right: `4`', src/lib.rs:25:9
        note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


        failures:
            tests::is_wrong

        test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

        END
        exit 101
        """
    write(tmp_path / "shop", SHOP)
    write(tmp_path / "bin", {"cargo": said})
    program = tmp_path / "bin" / "cargo"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo cargo 1.63.0 && exit\n{program.read_text()}")
    program.chmod(0o755)
    report = run(tmp_path / "shop", environ={**os.environ, "PATH": f"{program.parent}:/usr/bin:/bin"})
    (failure,) = report["failures"]
    assert (report["version"], report["passed"], report["failed"]) == ("1.63.0", 1, 1)
    assert (failure["path"], failure["line"]) == ("src/lib.rs", 25)
    assert failure["message"] == "assertion failed: `(left == right)`; left: `3`; right: `4`"
