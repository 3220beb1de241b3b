"""Files that hold keys and passwords, by name and by their first bytes. No agent is handed one unasked."""

from __future__ import annotations

import re

_NAMES = frozenset(
    (
        *(".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc", ".pypirc", ".htpasswd"),
        *(".git-credentials", ".dockercfg", ".vault-token", ".s3cfg", ".boto", ".terraformrc", "terraform.rc"),
        *("credentials", "credentials.json", "credentials.toml", "credentials.yaml", "credentials.yml"),
        *("credentials.ini", "credentials.csv", "client_secret.json", "application_default_credentials.json"),
        *("secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "secrets.env", "secrets.ini"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity"),
        *("master.key", "wallet.dat", "key3.db", "key4.db", "logins.json", "cookies.sqlite", "shadow", "gshadow"),
        *(".bash_history", ".zsh_history", ".sh_history", ".python_history", ".psql_history", ".mysql_history"),
        *(".node_repl_history", ".rediscli_history", ".lesshst"),
    )
)
_SUFFIXES = (
    *(".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".kdb", ".ppk", ".agekey", ".p8"),
    *(".gpg", ".tfstate", ".tfstate.backup", ".tfvars", ".ovpn", ".keytab", ".ccache", ".mobileprovision"),
)
_PATTERNS = re.compile(
    r"\.env\.(?!(?:example|sample|template|dist|defaults?)$).+|.+\.env(?:\.local)?|client_secret.*\.json"
    r"|service[-_]?account.*\.json|.*[-_.]private[-_]?key.*"
)
_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".gcloud", "gcloud"))
_KEY_BLOCK = re.compile(rb"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----")
_PUBLIC = (".pub", ".md", ".markdown", ".rst", ".txt", ".html")


def is_secret_name(name: str) -> bool:
    """Whether a file of this name is taken for a secret, whatever is in it."""
    lower = name.lower()
    if lower in _NAMES or lower.endswith(_SUFFIXES):
        return True
    return not lower.endswith(_PUBLIC) and _PATTERNS.fullmatch(lower) is not None


def is_secret_folder(name: str) -> bool:
    return name.lower() in _FOLDERS


def holds_private_key(head: bytes) -> bool:
    """A key under another name. Prose that shows the first line of one somewhere below its start is not meant."""
    return _KEY_BLOCK.match(head.lstrip()[:200]) is not None
