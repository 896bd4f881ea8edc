"""The JSON interface to users' files."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import FileResponse, Response

from latentpde.web.files import Files, Unknown, Upload
from latentpde.web.guards import UPLOADS
from latentpde.web.models import FileStatus, Picture, Reconstruction, api_problems
from latentpde.web.names import NETCDF, REPORT
from latentpde.web.workers import Busy, Fault, Refused, Unable

_Number = Annotated[str, Path(max_length=40, pattern="^[A-Za-z0-9_-]+$")]
_RAW_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_BUSY = "as many files are worked on as this server takes; try again later"


def add_file_routes(api: FastAPI, files: Files) -> None:
    """Take files in, reconstruct them, and hand out what comes of it."""

    def found(number: str) -> Upload:
        try:
            return files.get(number)
        except Unknown:
            raise HTTPException(404, "there is no such file; it may have been deleted") from None

    def finished(number: str) -> Upload:
        upload = found(number)
        if upload.state != "done":
            raise HTTPException(409, f"the reconstruction is not done: the file is {upload.state}")
        return upload

    @api.post(
        UPLOADS,
        status_code=201,
        response_model=FileStatus,
        responses=api_problems(400, 408, 413, 422, 500, 503),
        openapi_extra=_RAW_BODY,
    )
    async def upload_file(
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=255)],
        columns: Annotated[str | None, Query(max_length=200, description="x=lon,y=lat,t=date,value=pm10")] = None,
    ) -> dict:
        """Send a file as the body of the request, and see what it holds. Of its name only the ending is used."""
        try:
            return (await files.add(name, columns, request.stream())).status()
        except Refused as error:
            raise HTTPException(400, str(error)) from None
        except Busy:
            raise HTTPException(503, _BUSY, {"retry-after": "30"}) from None
        except Unable as error:
            raise HTTPException(503, str(error)) from None
        except Fault as error:
            raise HTTPException(500, str(error)) from None

    @api.get(UPLOADS + "/{number}", response_model=FileStatus, responses=api_problems(404, 422))
    async def file_status(number: _Number) -> dict:
        """What has become of a file."""
        return found(number).status()

    @api.post(
        UPLOADS + "/{number}/reconstruction",
        status_code=202,
        response_model=FileStatus,
        responses=api_problems(400, 404, 408, 409, 413, 422),
    )
    async def reconstruct_file(number: _Number, asked: Reconstruction) -> dict:
        """Begin to reconstruct a file; ask for its status to see how far it is."""
        upload = found(number)
        try:
            files.begin(upload, asked.model_dump(mode="json"))
        except Busy:
            raise HTTPException(409, "the file is being worked on already") from None
        return upload.status()

    @api.get(UPLOADS + "/{number}/pictures/{frame}", response_model=Picture, responses=api_problems(404, 409, 422))
    async def file_picture(number: _Number, frame: Annotated[int, Path(ge=0, le=1000)]) -> Response:
        """What is known at one of the result's times."""
        path = finished(number).folder / f"frame-{frame}.json"
        if not path.is_file():
            raise HTTPException(404, "there is no such picture")
        return Response(path.read_bytes(), media_type="application/json")

    @api.get(UPLOADS + "/{number}/netcdf", response_class=FileResponse, responses=api_problems(404, 409, 422))
    async def file_netcdf(number: _Number) -> FileResponse:
        """The reconstruction as a NetCDF file."""
        return FileResponse(finished(number).folder / NETCDF, media_type="application/x-netcdf", filename=NETCDF)

    @api.get(UPLOADS + "/{number}/report", response_class=FileResponse, responses=api_problems(404, 409, 422))
    async def file_report(number: _Number) -> FileResponse:
        """The reconstruction as a report, to be saved and opened: a page of its own, not a part of this one."""
        return FileResponse(finished(number).folder / REPORT, media_type="text/html", filename=REPORT)

    @api.delete(UPLOADS + "/{number}", status_code=204, responses=api_problems(404, 422))
    async def delete_file(number: _Number) -> Response:
        """Stop what is done with a file, and delete it with all that was made of it."""
        await files.delete(found(number))
        return Response(status_code=204)
