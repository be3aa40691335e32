"""A certificate authority made for one run, so that programs show the proxy what they send over TLS.

Its key never leaves this process. A host's own key has to come to OpenSSL as a file: on Linux one that is memory alone,
elsewhere one of mode 0600 that is gone at once.
"""

import os
import re
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import certifi
import trustme

from chaoslab.base.files import Unreadable, load_bytes

# The variables in which programs look for a file of certificates to believe. All but the last, Node's, replace the
# program's own.
VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")
_PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""The files of the system's certificates on Debian, Red Hat, and Alpine and macOS."""


class Trust:
    """The authority, and the contexts of TLS for its hosts."""

    def __init__(self) -> None:
        self._authority = trustme.CA(organization_name="chaoslab", organization_unit_name="made for one run")
        self._contexts: dict[str, ssl.SSLContext] = {}

    def get_server_context(self, host: str) -> ssl.SSLContext:
        """The context of a server that speaks HTTP/1.1 in the host's place. Raises ValueError: a certificate cannot
        have this name."""
        if host not in self._contexts:
            leaf, context = self._authority.issue_cert(host), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            # No HTTP/2: the gateway reads HTTP/1.1 only.
            context.set_alpn_protocols(["http/1.1"])
            if sys.platform == "linux":
                # OpenSSL reads keys from files alone; this one is memory, and is gone with its last descriptor.
                with open(os.memfd_create("chaoslab"), "wb", buffering=0) as file:
                    file.write(leaf.private_key_and_cert_chain_pem.bytes())
                    context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
            else:
                leaf.configure_cert(context)
            self._contexts[host] = context
        return self._contexts[host]

    def build_ca_bundle(self, environment: Mapping[str, str]) -> str:
        """The certificates that a program should believe, as PEM: those that it believes by itself, and the
        authority's."""
        # A program that reads one of these variables believes nothing else, so the bundle has what it would believe
        # without.
        paths = [certifi.where(), ssl.get_default_verify_paths().cafile, *_ROOTS, *map(environment.get, VARIABLES)]
        texts = [self._authority.cert_pem.bytes().decode()]
        # Some of the paths are None, or files that this system does not have.
        for path in filter(None, paths):
            with suppress(Unreadable):
                texts.append(load_bytes(Path(path)).decode("utf-8", "replace"))
        # Each once: the same roots stand in several of the files.
        return "\n".join(dict.fromkeys(certificate for text in texts for certificate in _PEM.findall(text))) + "\n"
