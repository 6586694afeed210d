"""An S3-compatible store for tests, over TLS on the loopback interface.

    store.py PORT CERTIFICATE KEY ACCESS_KEY SECRET_KEY OBJECTS

OBJECTS is a folder that holds BUCKET/KEY for each object. moto keeps them, but believes every signature in a query. So
botocore, which signs for Amazon's own clients, signs each request again, and the same has to come out. Prints a line
once it listens.
"""

import sys
import time
from calendar import timegm
from pathlib import Path
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

SIGNATURE = "X-Amz-Signature"
REFUSAL = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'


class Guard:
    """Lets through what is signed with the key."""

    def __init__(self, store, access_key, secret_key):
        self.store = store
        self.key = Credentials(access_key, secret_key)

    def __call__(self, environ, start_response):
        refusal = self.refusal(environ)
        if refusal is None:
            return self.store(environ, start_response)
        code, message = refusal
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [REFUSAL.format(code=code, message=message).encode()]

    def refusal(self, environ):
        """The error of S3 for a request that is not signed, or wrongly; none if there is nothing wrong."""
        query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        signature = query.pop(SIGNATURE, None)
        if signature is None:
            return "AccessDenied", "Access Denied"
        access_key, _, region, service, _ = query["X-Amz-Credential"].split("/")
        if access_key != self.key.access_key:
            return "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
        signed = timegm(time.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
        if not signed - 900 <= time.time() <= signed + int(query["X-Amz-Expires"]):
            return "AccessDenied", "Request has expired"
        if signature != self.sign(environ, query, region, service):
            return "SignatureDoesNotMatch", "The signature we calculated does not match the one you provided."
        return None

    def sign(self, environ, query, region, service):
        """The signature that the request should have."""
        names = query["X-Amz-SignedHeaders"].split(";")
        request = AWSRequest(
            method=environ["REQUEST_METHOD"],
            url=f"https://{environ['HTTP_HOST']}{environ['RAW_URI'].partition('?')[0]}",
            params=query,
            headers={name: environ["HTTP_" + name.upper().replace("-", "_")] for name in names},
        )
        request.context["timestamp"] = query["X-Amz-Date"]
        auth = S3SigV4QueryAuth(self.key, service, region)
        return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


def fill(store, objects):
    """Stores every file of the folder."""
    client = Client(store)
    for path in sorted(objects.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        name = path.relative_to(objects)
        # Folders on the way to an object are not stored, buckets are.
        if path.is_file() or len(name.parts) == 1:
            answer = client.put(f"/{quote(str(name))}", data=content, base_url="https://127.0.0.1")
            assert answer.status_code == 200, f"{name}: {answer.status}: {answer.text}"


def main():
    port, certificate, key, access_key, secret_key, objects = sys.argv[1:]
    store = DomainDispatcherApplication(create_backend_app)
    fill(store, Path(objects))
    server = make_server(
        "127.0.0.1",
        int(port),
        Guard(store, access_key, secret_key),
        threaded=True,
        request_handler=MotoRequestHandler,
        ssl_context=(certificate, key),
    )
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
