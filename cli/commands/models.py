"""`ledger models`: which providers can be asked, and the local model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from cli.rendering import print_json, print_table, say
from cli.running import read_environment
from cli.wiring import JsonOption
from forecasting.local_server import DEFAULT_PORT, LocalServer, find_model
from forecasting.providers.endpoints import ENDPOINTS, KEY_OPTIONAL
from ledger.errors import BadInputError

app = typer.Typer(help="Look at providers, serve the local model.", no_args_is_help=True)

PathOption = Annotated[
    Path | None, typer.Option("--path", help="A GGUF file; by default the packaged model.")
]


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List the providers and what each still needs.

    No key is ever printed.
    """
    environment = read_environment(Path())
    rows = []
    for endpoint in ENDPOINTS:
        address = environment.get(endpoint.base_url_variable) or endpoint.base_url
        has_key = endpoint.key_variable is None or bool(environment.get(endpoint.key_variable))
        needs = []
        if address is None:
            needs.append(endpoint.base_url_variable)
        if not has_key and endpoint.name not in KEY_OPTIONAL:
            needs.append(endpoint.key_variable or "")
        rows.append(
            {
                "provider": endpoint.name,
                "routes": ", ".join(wire.route for wire in endpoint.wires),
                "address": address,
                "needs": ", ".join(needs) or None,
            }
        )
    rows.append({"provider": "scripted", "routes": "scripted", "address": None, "needs": None})
    if json:
        print_json(rows)
    else:
        print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])


@app.command()
def serve(
    path: PathOption = None,
    port: Annotated[
        int, typer.Option("--port", help="The port; 0 takes any free one.")
    ] = DEFAULT_PORT,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of the model.")] = 1,
) -> None:
    """Serve the local model on loopback until interrupted.

    One slot, no prompt cache: equal calls have equal answers, which is checked at the start.
    """
    with LocalServer(find_model(path), sleep=time.sleep, port=port, threads=threads) as server:
        say(f"serving {server.model.name} at {server.base_url}; stop it with Ctrl-C")
        while True:
            time.sleep(3600)


@app.command()
def check(path: PathOption = None, json: JsonOption = False) -> None:
    """Check that the local model can be served.

    The file, its digest, a start, and equal answers to equal calls. Exit code 1 where it
    cannot be served.
    """
    try:
        began = time.perf_counter()
        with LocalServer(find_model(path), sleep=time.sleep, port=0) as server:
            result = {
                "model": server.model.name,
                "sha256": server.model.sha256,
                "seconds": round(time.perf_counter() - began, 2),
                "problem": None,
            }
    except BadInputError as error:
        result = {"model": None, "sha256": None, "seconds": None, "problem": str(error)}
    if json:
        print_json(result)
    elif result["problem"]:
        say(f"the local model cannot be served: {result['problem']}")
    else:
        say(f"{result['model']}: served and checked in {result['seconds']} s")
        say(f"SHA-256 {result['sha256']}")
    if result["problem"]:
        raise typer.Exit(1)
