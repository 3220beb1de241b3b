"""What to do when a server failed for want of a network: read from its last words."""

from __future__ import annotations

import re

_TLS = re.compile(
    r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY|GET)_|DEPTH_ZERO_SELF_SIGNED"
    r"|invalid peer certificate"
    r"|certificate (?:verify failed|signed by unknown authority|has expired)|self[- ]signed certificate|UnknownIssuer"
    r"|unable to get local issuer|SSL certificate problem",
    re.IGNORECASE,
)
_PROXY = re.compile(
    r"\b407\b|Proxy Authentication Required|ERR_PROXY|tunnel(?:ing)? socket|proxy connection", re.IGNORECASE
)
_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED.*(?:registry|proxy)|getaddrinfo|Temporary failure in name resolution"
    r"|dns error|failed to (?:fetch|download|lookup)|network (?:is unreachable|timeout)|error sending request",
    re.IGNORECASE,
)


def network_advice(said: str) -> str:
    """The next step, or nothing when its words do not speak of the network."""
    if _TLS.search(said):
        return (
            "it does not trust the certificate it was shown: name your company's CA in SSL_CERT_FILE and "
            "NODE_EXTRA_CA_CERTS where Dari starts (servers inherit both), or in env of its profile"
        )
    if _PROXY.search(said):
        return "a proxy refused it: check HTTPS_PROXY and its login where Dari starts, or in env of its profile"
    if _NETWORK.search(said):
        return (
            "it could not reach the network: set HTTPS_PROXY and NO_PROXY where Dari starts if you are behind a proxy, "
            "and see network in its profile"
        )
    return ""
