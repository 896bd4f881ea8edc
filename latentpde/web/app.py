"""The application: one page, and the JSON interface that the page itself uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from importlib.resources import files as resources

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp

from latentpde import __version__
from latentpde.web.answers import Answers
from latentpde.web.file_routes import add_file_routes
from latentpde.web.files import Files
from latentpde.web.guards import Guard
from latentpde.web.models import LOOKS, Catalogue, Picture, Place, Scene, api_problems
from latentpde.web.settings import Settings
from latentpde.web.workers import Busy, Fault, Pool, Refused, Unable

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_DESCRIPTION = "Whole fields, and the PDE behind them, from a few noisy readings: what the page asks, for programs."


def make_app(settings: Settings | None = None) -> ASGIApp:
    """The application, with the guard around it; its workers start and end with the server.

    >>> type(make_app()).__name__
    'Guard'
    """
    settings = settings or Settings()
    pool, answers = Pool(settings), Answers(settings.cache_bytes)
    files = Files(settings, pool.context)

    def ask(task: str, scene: Scene) -> Awaitable[bytes]:
        about = scene.model_copy(update=LOOKS).model_dump_json()
        arguments = {"scene": scene.model_dump(mode="json")}
        return answers.get(f"{task} {scene.model_dump_json()}", lambda: pool.run(task, arguments, about))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            pool.start()
            await answers.get("catalogue", lambda: pool.run("catalogue", {}))  # a server that cannot answer ends here
            files.start()
            yield
        finally:
            files.end()
            pool.end()

    api = FastAPI(
        title="LatentPDE",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # these two load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )

    @api.get("/api/catalogue", response_model=Catalogue, responses=api_problems(500, 503))
    async def catalogue() -> Response:
        """The PDEs that scenes can be made of, and the scene that the page begins with."""
        return await _json(answers.get("catalogue", lambda: pool.run("catalogue", {})))

    @api.post("/api/picture", response_model=Picture, responses=api_problems(400, 408, 413, 422, 500, 503))
    async def picture(scene: Scene) -> Response:
        """What is known of a scene: mean and spread of field and source, and the posterior of the coefficients."""
        return await _json(ask("picture", scene))

    @api.post("/api/suggestion", response_model=Place, responses=api_problems(400, 408, 413, 422, 500, 503))
    async def suggestion(scene: Scene) -> Response:
        """Where one more sensor would tell most about the field."""
        return await _json(ask("suggestion", scene))

    @api.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> Response:
        return JSONResponse({"detail": _sentence(error)}, 422)

    add_file_routes(api, files)
    _serve_page(api)
    return Guard(api, settings)


async def _json(work: Awaitable[bytes]) -> Response:
    """A worker's answer as it is; why there is none as the right status."""
    try:
        return Response(await work, media_type="application/json")
    except Refused as error:
        raise HTTPException(400, str(error)) from None
    except Busy:
        raise HTTPException(503, "too many requests wait already; try again", {"retry-after": "2"}) from None
    except Unable as error:
        raise HTTPException(503, str(error)) from None
    except Fault as error:
        raise HTTPException(500, str(error)) from None


def _sentence(error: RequestValidationError) -> str:
    """What is wrong with a request, and where; nothing of the request itself is sent back."""
    found = [f"{'.'.join(str(part) for part in one['loc'][1:4])}: {one['msg']}" for one in error.errors()[:5]]
    return "; ".join(found).encode("utf-8", "replace").decode()[:500]


def _serve_page(api: FastAPI) -> None:
    """The page's own files, and no others: they are read once, and a client names none of them by a path."""
    folder = resources("latentpde.web") / "static"
    for entry in folder.iterdir():
        name, kind = entry.name, _KINDS.get(entry.name.rpartition(".")[2])
        if kind is not None:
            _serve_file(api, "/" if name == "index.html" else f"/{name}", entry.read_bytes(), kind)


def _serve_file(api: FastAPI, path: str, content: bytes, kind: str) -> None:
    async def page() -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    api.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
