#!/usr/bin/env python3
"""Requests an API key from svc-api, waits until a person approves, and prints the key.

    get_key.py http://127.0.0.1:4000 "role:GUEST SERVICES:READ_ANY"            # shows a code
    get_key.py --browser http://127.0.0.1:4000 "role:GUEST SERVICES:READ_ANY"  # opens a page

Needs Authlib and Requests: apt install python3-authlib python3-requests, or pip install authlib requests. By default, it uses the
client id svc-api. Register a client of your own in svc-api.yaml, and set CLIENT_ID to its id. To open a page, also set
"consent: both" there.
"""

import os
import sys
import time
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session, OAuthError

CLIENT_ID = os.environ.get("CLIENT_ID", "svc-api")
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def key_by_code(metadata, scope):
    """Shows a code for a person to type (RFC 8628), and asks until they have decided."""
    form = {"client_id": CLIENT_ID, "scope": scope}
    asked = requests.post(metadata["device_authorization_endpoint"], form, timeout=30)
    asked.raise_for_status()
    device = asked.json()
    print(f"Open {device['verification_uri']} and type {device['user_code']}", file=sys.stderr, flush=True)
    wait = device["interval"]
    session = OAuth2Session(CLIENT_ID, token_endpoint_auth_method="none")
    while True:
        time.sleep(wait)
        try:
            grant = {"grant_type": DEVICE_GRANT, "device_code": device["device_code"]}
            return session.fetch_token(metadata["token_endpoint"], **grant)["access_token"]
        except OAuthError as error:
            if error.error == "slow_down":
                wait += 5
            elif error.error != "authorization_pending":
                raise


def key_by_page(metadata, scope):
    """Opens a page, and waits on a loopback address until it leads back there (RFC 8252, with PKCE)."""
    back = {}

    class Callback(BaseHTTPRequestHandler):
        def do_GET(self):
            back["url"] = f"http://127.0.0.1:{self.server.server_port}{self.path}"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"You can close this page.")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Callback)
    redirect = f"http://127.0.0.1:{server.server_port}/callback"
    session = OAuth2Session(
        CLIENT_ID,
        scope=scope,
        redirect_uri=redirect,
        code_challenge_method="S256",
        token_endpoint_auth_method="none",
    )
    verifier = generate_token(48)
    page, state = session.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
    print(f"Open {page}", file=sys.stderr, flush=True)
    webbrowser.open(page)
    while urlsplit(back.get("url", "")).path != "/callback":
        server.handle_request()
    token = session.fetch_token(
        metadata["token_endpoint"],
        authorization_response=back["url"],
        state=state,
        code_verifier=verifier,
    )
    return token["access_token"]


def main(arguments):
    by_page = arguments[0] == "--browser"
    server, scope = arguments[1:] if by_page else arguments
    known = requests.get(f"{server}/.well-known/oauth-authorization-server", timeout=30)
    known.raise_for_status()
    print((key_by_page if by_page else key_by_code)(known.json(), scope))


if __name__ == "__main__":
    main(sys.argv[1:])
