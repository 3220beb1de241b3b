"""Which tests touch a file or a symbol, and why: by imports, names and mentions, in four languages."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dari.codetools.testing.touching.choice import TouchingTests, choose_tests
from dari.codetools.workspace import Workspace
from dari.errors import Failed, NotFound
from tests.support.tested_projects import run, write

SHOP = {
    "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n",
    "src/shop/__init__.py": "from shop.prices import total\nfrom .cart import Cart\n",
    "src/shop/prices.py": """
        def total(items):
            return sum(items)

        def tax(items):
            return total(items) // 10
        """,
    "src/shop/cart.py": """
        from .prices import (
            tax,  # a comment, with a comma
            total,
        )

        class Cart:
            def __init__(self, items):
                self.items = items

            def checkout(self):
                return total(self.items) + tax(self.items)
        """,
    "src/shop/mail.py": "import smtplib\n\ndef send(text):\n    return text\n",
    "tests/helpers.py": "import shop.mail\n\ndef sent():\n    return shop.mail.send('x')\n",
    "tests/test_prices.py": """
        from shop import total
        import shop.prices as prices

        def test_total():
            assert total([1, 2]) == 3

        def test_tax():
            assert prices.tax([10]) == 1
        """,
    "tests/test_cart.py": """
        from shop import Cart

        class TestCart:
            def test_checkout(self):
                assert Cart([10]).checkout() == 11

            def test_items(self):
                assert Cart([10]).items == [10]
        """,
    "tests/test_letters.py": "from helpers import sent\n\ndef test_sent():\n    assert sent() == 'x'\n",
    "tests/data/prices.json": "[]\n",
}


def choose(folder: Path, *names: str) -> TouchingTests:
    return choose_tests(Workspace([folder]), names)


def targets(choice: TouchingTests) -> list[str]:
    return [one.target for one in choice.chosen]


def test_a_python_file_is_touched_by_those_that_import_it_however_far(tmp_path: Path) -> None:
    choice = choose(write(tmp_path, SHOP), "src/shop/prices.py")
    assert {one.target: one.why for one in choice.chosen} == {
        "tests/test_prices.py": "imports src/shop/prices.py",
        "tests/test_cart.py": "imports src/shop/cart.py → src/shop/prices.py",
    }


def test_what_a_package_hands_on_is_followed_to_where_it_is_defined(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    assert targets(choose(tmp_path, "src/shop/mail.py")) == ["tests/test_letters.py"]
    assert targets(choose(tmp_path, "src/shop/cart.py")) == ["tests/test_cart.py"]
    assert len(targets(choose(tmp_path, "src/shop/__init__.py"))) == 3


def test_a_symbol_chooses_single_tests_that_use_it_or_what_uses_it(tmp_path: Path) -> None:
    choice = choose(write(tmp_path, SHOP), "tax")
    assert {one.target: one.why for one in choice.chosen} == {
        "tests/test_prices.py::test_tax": "uses tax",
        "tests/test_cart.py::TestCart::test_checkout": "uses checkout, which uses tax",
    }
    assert targets(choose(tmp_path, "Cart.checkout")) == ["tests/test_cart.py::TestCart::test_checkout"]


def test_a_fixture_that_uses_a_symbol_takes_the_whole_file(tmp_path: Path) -> None:
    code = "from shop import Cart\n\ndef make():\n    return Cart([])\n\ndef test_a():\n    make()\n"
    write(tmp_path, SHOP | {"tests/test_cart.py": code})
    assert targets(choose(tmp_path, "Cart")) == ["tests/test_cart.py"]


def test_a_conftest_stands_for_all_tests_below_it(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"tests/conftest.py": "from shop.mail import send\n"})
    assert len(targets(choose(tmp_path, "src/shop/mail.py"))) == 3


def test_a_test_file_and_a_data_file_choose_themselves_and_who_mentions_them(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"tests/test_data.py": "def test_data():\n    open('data/prices.json')\n"})
    assert targets(choose(tmp_path, "tests/test_letters.py")) == ["tests/test_letters.py"]
    assert targets(choose(tmp_path, "tests/data/prices.json")) == ["tests/test_data.py"]


def test_documentation_that_no_code_mentions_runs_nothing(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"README.md": "# Shop\n", "src/shop/mail.py": "TEMPLATE = 'letter.txt'\n"})
    assert choose(tmp_path, "README.md") == TouchingTests((), (), False, ("no code mentions README.md",))
    report = run(tmp_path, touching=["README.md"])
    assert (report["collected"], report["notes"]) == (0, ["no code mentions README.md"])
    write(tmp_path, {"src/shop/letter.txt": "Dear\n"})
    assert targets(choose(tmp_path, "src/shop/letter.txt", "README.md")) == ["tests/test_letters.py"]


def test_configuration_and_what_nothing_imports_mean_all_and_say_so(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"src/shop/alone.py": "x = 1\n"})
    for name in ("pyproject.toml", "src/shop/alone.py"):
        choice = choose(tmp_path, name)
        assert choice.is_all and choice.notes


def test_a_file_that_no_test_touches_is_named_beside_others(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"src/shop/alone.py": "x = 1\n"})
    choice = choose(tmp_path, "src/shop/alone.py", "src/shop/mail.py")
    assert targets(choice) == ["tests/test_letters.py"]
    assert choice.notes == ("no test touches src/shop/alone.py",)


def test_an_unknown_symbol_is_not_found(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    with pytest.raises(NotFound, match="nowhere_at_all"):
        choose(tmp_path, "nowhere_at_all")
    with pytest.raises(NotFound, match=r"src/shop/cart\.py"):
        choose(tmp_path, "Basket.checkout")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    assert "tests/test_letters.py" not in targets(choose(tmp_path, "src/shop/prices.py"))
    write(tmp_path, {"tests/test_letters.py": "import shop.prices\n\ndef test_sent():\n    pass\n"})
    assert "tests/test_letters.py" in targets(choose(tmp_path, "src/shop/prices.py"))


def test_a_search_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Failed):
        choose_tests(Workspace([write(tmp_path, SHOP)]), ["tax"], stop)


def test_typescript_is_followed_through_aliases_index_files_and_mocks(tmp_path: Path) -> None:
    files = {
        "package.json": "{}",
        "tsconfig.json": '{\n  // aliases\n  "compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["src/*"]},},\n}\n',
        "src/prices/index.ts": "export { total } from './total.js';\n",
        "src/prices/total.ts": "export const total = (items: number[]) => items.length;\n",
        "src/cart.tsx": "import { total } from '@/prices';\nexport function checkout() { return total([]); }\n",
        "src/cart.test.tsx": "import { checkout } from './cart';\ntest('a', () => { checkout(); });\n",
        "src/other.spec.ts": "test('b', () => {});\n",
        "src/lazy.test.ts": "test('c', async () => { await import('@/prices/total'); });\n",
        "src/mocked.test.ts": "vi.mock('./prices/total');\ntest('d', () => {});\n",
    }
    write(tmp_path, files)
    assert set(targets(choose(tmp_path, "src/prices/total.ts"))) == {
        "src/cart.test.tsx",
        "src/lazy.test.ts",
        "src/mocked.test.ts",
    }
    assert targets(choose(tmp_path, "checkout")) == ["src/cart.test.tsx"]


def test_go_is_followed_by_package(tmp_path: Path) -> None:
    files = {
        "go.mod": "module example.com/shop\n",
        "prices/prices.go": "package prices\n\nfunc Total() int { return 1 }\n",
        "prices/prices_test.go": """
            package prices

            func TestTotal(t *testing.T) { Total() }
            func TestOther(t *testing.T) {}
            """,
        "cart/cart.go": """
            package cart

            import (
                "fmt"
                p "example.com/shop/prices"
            )

            func Pay() { p.Total() }
            """,
        "cart/cart_test.go": "package cart\n\nfunc TestPay(t *testing.T) { Pay() }\n",
        "mail/mail.go": "package mail\n",
        "mail/mail_test.go": "package mail\n\nfunc TestMail(t *testing.T) {}\n",
    }
    write(tmp_path, files)
    assert set(targets(choose(tmp_path, "prices/prices.go"))) == {"prices/prices_test.go", "cart/cart_test.go"}
    assert targets(choose(tmp_path, "Total")) == ["prices::TestTotal", "cart::TestPay"]


def test_rust_is_followed_by_module(tmp_path: Path) -> None:
    tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn works() {}\n}\n"
    files = {
        "Cargo.toml": '[package]\nname = "shop"\n',
        "src/lib.rs": "pub mod prices;\npub mod mail;\n",
        "src/prices.rs": f"pub fn total() {{}}\n{tests}",
        "src/mail.rs": f"pub fn send() {{}}\n{tests}",
        "tests/whole.rs": "use shop::prices::total;\n\n#[test]\nfn whole() { total(); }\n",
        "tests/other.rs": "#[test]\nfn other() {}\n",
    }
    write(tmp_path, files)
    assert set(targets(choose(tmp_path, "src/prices.rs"))) == {"src/prices.rs", "tests/whole.rs"}


def test_only_the_tests_that_touch_it_run_and_the_result_says_why(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"pytest.ini": "[pytest]\npythonpath = src tests\n"})
    report = run(tmp_path, touching=["src/shop/mail.py"])
    assert (report["passed"], report["collected"]) == (1, 1)
    assert report["chosen"] == [
        {"why": "imports tests/helpers.py → src/shop/mail.py", "targets": ["tests/test_letters.py"]},
    ]
    assert run(tmp_path, touching=["tax"])["collected"] == 2
    assert run(tmp_path, touching=["tax"], targets=["tests/test_cart.py"])["collected"] == 1
    assert run(tmp_path, touching=["pyproject.toml"])["collected"] == 5


def test_a_symbol_as_a_target_is_a_test_of_that_name_or_what_touches_it(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"pytest.ini": "[pytest]\npythonpath = src tests\n"})
    assert run(tmp_path, targets=["test_tax"])["collected"] == 1
    assert run(tmp_path, targets=["TestCart"])["collected"] == 2
    assert run(tmp_path, targets=["TestCart.test_items"])["collected"] == 1
    assert run(tmp_path, targets=["checkout"])["chosen"][0]["why"] == "uses checkout"


def test_two_thousand_files_a_link_loop_and_a_broken_file_are_ordinary(tmp_path: Path) -> None:
    write(tmp_path, SHOP | {"src/shop/broken.py": "def (:\n", "src/shop/binary.py": "\0" * 1000})
    (tmp_path / "src" / "loop").symlink_to(tmp_path / "src")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(2000):
        (many / f"m{number}.py").write_text(f"import many.m{number - 1}\n")
    write(tmp_path, {"tests/test_many.py": "import many.m1999\n\ndef test_many():\n    pass\n"})
    choice = choose(tmp_path, "many/m0.py")
    assert targets(choice) == ["tests/test_many.py"]
