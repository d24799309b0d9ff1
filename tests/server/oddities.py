"""Odd sequences of bytes, and what must come of each: a table.

A row is (name, bytes, what is told, why). What is told: "2" an answer with 200, "4" one with 4xx, "!" the end of the
connection; "" is nothing, as more is waited for. "/evil" stands wherever a request must not be read: in bodies,
trailers, header values, and behind the end of a connection. `why` says, from RFC 9110 and RFC 9112, why the
row is as it is; it must be there where uvicorn's own parsers, httptools and h11, make another number of requests of the
same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

LIMIT = 65_536
"""Bytes of a head, at most: its target, its headers and four for each of them."""
HOST = b"Host: localhost"
EVIL = b"GET /evil HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTH = b"Content-Length: %d" % len(EVIL)
NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Case(NamedTuple):
    """A row."""

    name: str
    data: bytes
    told: str
    why: str = ""


def ask(method: str, *lines: bytes, body: bytes = b"", target: bytes = b"/a", version: bytes = b"HTTP/1.1") -> bytes:
    """A request of these lines and a Host, with these bytes behind it."""
    return b"\r\n".join([method.encode() + b" " + target + b" " + version, HOST, *lines, b"", body])


def sized(*lines: bytes, body: bytes = EVIL) -> bytes:
    """A POST whose body is as long as it says, and a request after it."""
    return ask("POST", *lines, b"Content-Length: %d" % len(body), body=body) + NEXT


def chunked(body: bytes, *lines: bytes, behind: bytes = b"") -> bytes:
    """A POST of chunks, as they are given."""
    return ask("POST", *lines, b"Transfer-Encoding: chunked", body=body) + behind


def chunk(body: bytes = EVIL) -> bytes:
    """One chunk and the last."""
    return b"%x\r\n%s\r\n0\r\n" % (len(body), body)


CASES: list[Case] = []


def rows(group: str, *cases: tuple[str, bytes, str] | tuple[str, bytes, str, str]) -> None:
    """Put rows of a group in the table."""
    CASES.extend(Case(f"{group}: {name}", *rest) for name, *rest in cases)  # type: ignore[arg-type]


# fmt: off
# ---------------------------------------------------------------------------- what is fine

rows(
    "plain",
    ("get", ask("GET"), "2"),
    ("two", ask("GET") + NEXT, "2 2"),
    ("six", ask("GET") + NEXT * 5, "2 2 2 2 2 2"),
    ("post", sized(), "2 2"),
    ("put", sized().replace(b"POST", b"PUT", 1), "2 2"),
    ("get with a body", sized().replace(b"POST", b"GET", 1), "2 2"),
    ("delete with a body", sized().replace(b"POST", b"DELETE", 1), "2 2"),
    ("head", ask("HEAD") + NEXT, "2 2"),
    ("head with a body", sized().replace(b"POST", b"HEAD", 1), "2 2"),
    ("options", ask("OPTIONS") + NEXT, "2 2"),
    ("chunks", chunked(chunk() + b"\r\n", behind=NEXT), "2 2"),
    ("get of chunks", chunked(chunk() + b"\r\n", behind=NEXT).replace(b"POST", b"GET", 1), "2 2"),
    ("no length is none", ask("POST") + NEXT, "2 2"),
    ("length 0", ask("POST", b"Content-Length: 0") + NEXT, "2 2"),
    ("names in capitals", ask("POST", b"CONTENT-LENGTH: 3", body=b"abc") + NEXT, "2 2"),
    ("tab before a value", ask("POST", b"Content-Length:\t3", body=b"abc") + NEXT, "2 2"),
    ("blanks after a value", ask("POST", b"Content-Length: 3  ", body=b"abc") + NEXT, "2 2"),
    ("no blank before a value", ask("POST", b"Content-Length:3", body=b"abc") + NEXT, "2 2"),
    ("empty value", ask("GET", b"X:") + NEXT, "2 2"),
    ("value of high bytes", ask("GET", b"X: \xff\xfe") + NEXT, "2 2"),
    ("same header often", ask("GET", *[b"X: y"] * 100) + NEXT, "2 2"),
    ("not all there", ask("GET")[:-2], ""),
    ("a body not all there", ask("POST", b"Content-Length: 5", body=b"abc"), ""),
    ("chunks not all there", chunked(chunk()), ""),
    ("a query like a request", ask("GET", target=b"/a?GET%20/evil%20HTTP/1.1%0d%0a") + NEXT, "2 2"),
    ("a value like a request", ask("GET", b"X: GET /evil HTTP/1.1") + NEXT, "2 2"),
)

# ---------------------------------------------------------------------------- how long a body is

NO_LENGTHS = [b"-1", b"+5", b"+0", b"5 5", b"5,5", b"5, 5", b"5;", b"0x5", b"5.0", b"1e1", b"1_0", b"five", b"", b" "]
NO_LENGTHS += [b"\x0b5", b"5\x0b", b"\xb2", b"5\0", b"18446744073709551616", b"9" * 30, b'"5"', b"5 chunked", b"--5"]
NO_LENGTHS += [b"\xd9\xa5", b"5\r5", b"5\n", b"5\r\r\n"]
WHY_LENGTH = "RFC 9112, 6.3: a length that is none cannot be recovered from: 400, and the end"
rows("length", *[(repr(each), ask("POST", b"Content-Length: " + each, body=EVIL), "4!", WHY_LENGTH) for each in NO_LENGTHS])
WHY_TWICE = "RFC 9112, 6.3: lengths that differ are refused; equal ones may be, as somebody in between may take the other"
rows(
    "lengths",
    *[
        (f"{one} and {other}", ask("POST", b"Content-Length: " + one, b"Content-Length: " + other, body=EVIL), "4!", WHY_TWICE)
        for one, other in [(b"3", b"3"), (b"0", b"39"), (b"39", b"0"), (b"0", b"0"), (b"3", b"x"), (b"x", b"3"), (b"3", b"03")]
    ],
    ("in other letters", ask("POST", b"content-length: 0", LENGTH.upper(), body=EVIL), "4!", WHY_TWICE),
    ("zeros before it", ask("POST", b"Content-Length: " + b"0" * 30 + b"3", body=b"abc") + NEXT, "2 2", "digits are digits, RFC 9110, 8.6; h11 wants at most 20"),
    ("the largest there is", ask("POST", b"Content-Length: 18446744073709551615", body=EVIL), "", "it may come"),
    ("a blank before the colon", ask("POST", LENGTH.replace(b":", b" :"), body=EVIL), "4!", "RFC 9112, 5.1: 400"),
    ("a tab before the colon", ask("POST", LENGTH.replace(b":", b"\t:"), body=EVIL), "4!", "RFC 9112, 5.1: 400"),
    ("a blank before the name", ask("POST", b" " + LENGTH, body=EVIL), "4!", "RFC 9112, 2.2 and 5.2"),
    ("a NUL in the name", ask("POST", LENGTH.replace(b"-", b"\0-"), body=EVIL), "4!"),
    ("an underscore is another name", ask("POST", LENGTH.replace(b"-", b"_")) + NEXT, "2 2"),
    ("too much for the length", ask("POST", b"Content-Length: 3", body=b"abcX") + NEXT.replace(b"/next", b"/evil"), "2 4!", "no method is called XGET"),
    ("a request too much", ask("POST", b"Content-Length: 3", body=b"abc") + NEXT, "2 2"),
    ("on the next line", ask("POST", b"Content-Length:", b" 39", body=EVIL), "4!", "RFC 9112, 5.2: 400"),
)

WHY_BOTH = "RFC 9112, 6.1: a message with both may be refused, and is"
CODINGS = [b"identity", b"gzip", b"chunked, gzip", b"chunked, identity", b"chunked, chunked", b"xchunked", b"chunkedx"]
CODINGS += [b"chunked;q=1", b'"chunked"', b"chunked,", b"", b"\x0bchunked", b"chunked\x0b", b"chunked\0", b"chunke"]
CODINGS += [b"chunked chunked", b"c\xe7hunked", b"'chunked'", b"chunked;", b"[chunked]"]
WHY_CODING = "RFC 9112, 6.1 and 6.3: a coding that is not understood, or not chunked at last, is refused"
GUNZIP = "RFC 9112, 6.1: a coding that is not understood is refused; nothing here unpacks one"
rows(
    "coding",
    *[(repr(each), ask("POST", b"Transfer-Encoding: " + each, body=b"0\r\n\r\n" + EVIL), "4!", WHY_CODING) for each in CODINGS],
    ("gzip, chunked", ask("POST", b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n" + EVIL), "4!", GUNZIP),
    ("identity, chunked", ask("POST", b"Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n" + EVIL), "4!", GUNZIP),
    (", chunked", ask("POST", b"Transfer-Encoding: ,chunked", body=b"0\r\n\r\n" + EVIL), "4!", "an element that is empty is not what anybody sends: the same bytes may be read in another way"),
    ("in capitals", ask("POST", b"TRANSFER-ENCODING: CHUNKED", body=b"0\r\n\r\n") + NEXT, "2 2"),
    ("blanks around", ask("POST", b"Transfer-Encoding: \t chunked \t", body=b"0\r\n\r\n") + EVIL, "4!", "RFC 9112, 5.1: they do not count; what nobody sends may be refused, as others may take it for another coding"),
    ("twice", ask("POST", *[b"Transfer-Encoding: chunked"] * 2, body=b"0\r\n\r\n" + EVIL), "4!", "RFC 9112, 6.1: chunked once"),
    ("gzip on a line before", ask("POST", b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL), "4!", GUNZIP),
    ("identity on a line after", ask("POST", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n" + EVIL), "4!", WHY_CODING),
    ("and a length", ask("POST", b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n" + EVIL), "4!", WHY_BOTH),
    ("a length, and", ask("POST", b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL), "4!", WHY_BOTH),
    ("and length 0", ask("POST", b"Transfer-Encoding: chunked", b"Content-Length: 0", body=b"0\r\n\r\n" + EVIL), "4!", WHY_BOTH),
    ("a length, and gzip", ask("POST", b"Content-Length: 5", b"Transfer-Encoding: gzip", body=b"0\r\n\r\n" + EVIL), "4!", WHY_BOTH),
    ("a blank before the colon", ask("POST", b"Transfer-Encoding : chunked", body=b"0\r\n\r\n" + EVIL), "4!", "RFC 9112, 5.1"),
    ("on the next line", ask("POST", b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n" + EVIL), "4!", "RFC 9112, 5.2"),
    ("a blank before the name", ask("POST", b" Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL), "4!", "RFC 9112, 2.2"),
    ("a tab before the name", ask("POST", b"X: y", b"\tTransfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL), "4!", "RFC 9112, 5.2"),
    ("of HTTP/1.0", ask("POST", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL, version=b"HTTP/1.0"), "4!", "RFC 9112, 6.1: with HTTP/1.0 the framing is faulty"),
    ("of HTTP/1.0, with a length", ask("POST", b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EVIL, version=b"HTTP/1.0"), "4!", WHY_BOTH),
    ("an underscore is another name", ask("POST", b"Transfer_Encoding: chunked") + NEXT, "2 2"),
    ("in the TE header", ask("POST", b"TE: chunked") + NEXT, "2 2"),
)

# ---------------------------------------------------------------------------- chunks

WHY_SIZE = "RFC 9112, 7.1: a size is hexadecimal digits, and an extension begins with ;"
SIZES = [b"-1", b"+5", b"0x5", b" 5", b"5 ", b"\t5", b"5\t", b"", b";", b"g", b"5_0", b"5,", b"5.0", b"\xb2", b"5\0", b"1" * 17]
SIZES += [b"10000000000000000", b"5 x", b"\n5"]
WHY_LINE = "RFC 9112, 7.1 and 2.2: the lines of chunks end with CRLF; a bare LF or CR may end them for others"
rows(
    "chunk",
    *[(f"size {each!r}", chunked(each + b"\r\nabcde\r\n0\r\n\r\n", behind=EVIL), "4!", WHY_SIZE) for each in SIZES],
    ("zeros before the size", chunked(b"0" * 10 + b"3\r\nabc\r\n0\r\n\r\n", behind=NEXT), "2 2"),
    ("many zeros before the size", chunked(b"0" * 30 + b"3\r\nabc\r\n0\r\n\r\n", behind=NEXT), "2 2", "digits are digits; h11 wants at most 20"),
    ("size in capitals", chunked(b"A\r\n0123456789\r\n0\r\n\r\n", behind=NEXT), "2 2"),
    ("the largest size there is", chunked(b"ffffffffffffffff\r\n" + EVIL), "", "it may come"),
    ("a large size", chunked(b"7fffffff\r\n" + EVIL), "", "it may come"),
    ("last of many zeros", chunked(b"3\r\nabc\r\n0000\r\n\r\n", behind=NEXT), "2 2"),
    ("none", chunked(b"0\r\n\r\n", behind=NEXT), "2 2"),
    ("many", chunked(b"1\r\na\r\n" * 50 + b"0\r\n\r\n", behind=NEXT), "2 2"),
    ("too short", chunked(b"2\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!"),
    ("too long", chunked(b"4\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!"),
    ("no end of its data", chunked(b"3\r\nabc0\r\n\r\n", behind=EVIL), "4!"),
    ("an LF after its size", chunked(b"3\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("a CR after its size", chunked(b"3\rabc\r\n0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("an LF after its data", chunked(b"3\r\nabc\n0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("a CR after its data", chunked(b"3\r\nabc\r0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("an LF after the last", chunked(b"3\r\nabc\r\n0\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("an LF at the end", chunked(b"3\r\nabc\r\n0\r\n\n", behind=EVIL), "4!", WHY_LINE),
    ("two LF at the end", chunked(b"3\r\nabc\r\n0\n\n", behind=EVIL), "4!", WHY_LINE),
    ("an extension", chunked(b"3;x\r\nabc\r\n0\r\n\r\n", behind=NEXT), "2 2"),
    ("an extension with a value", chunked(b"3;x=y\r\nabc\r\n0;z\r\n\r\n", behind=NEXT), "2 2"),
    ("an extension in quotes", chunked(b'3;x="y z"\r\nabc\r\n0\r\n\r\n', behind=NEXT), "2 2"),
    ("several extensions", chunked(b"3;x=y;z;w=v\r\nabc\r\n0\r\n\r\n", behind=NEXT), "2 2"),
    ("a line in the quotes", chunked(b'3;x="\r\n' + EVIL + b'"\r\nabc\r\n0\r\n\r\n'), "4!", "RFC 9110, 5.6.4: no line ends in quotes"),
    ("an LF in an extension", chunked(b"3;x\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("a CR in an extension", chunked(b"3;x\ry\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("a NUL in an extension", chunked(b"3;\0\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", "no control character is one of a token"),
    ("a blank before an extension", chunked(b"3 ;x\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", "RFC 9112, 7.1.1: BWS is for recipients to parse, but differently read by many: refused"),
    ("a blank after the ;", chunked(b"3; x\r\nabc\r\n0\r\n\r\n", behind=EVIL), "4!", "as before"),
    ("a request in it", chunked(chunk() + b"\r\n", behind=NEXT), "2 2"),
    ("data without a chunk", chunked(EVIL), "4!"),
)

# ---------------------------------------------------------------------------- trailers

FIELDS = [b"Host: evil", b"Authorization: Bearer x", b"Content-Type: text/evil", b"Content-Encoding: gzip"]
FIELDS += [b"Content-Range: bytes 0-1/2", b"Trailer: X", b"Cookie: a=b", b"Set-Cookie: a=b", b"Expect: 100-continue"]
FIELDS += [b"Cache-Control: no-store", b"Max-Forwards: 1", b"TE: trailers", b"Range: bytes=0-1", b"If-Match: x"]
FIELDS += [b"Proxy-Authorization: x", b"Origin: http://evil", b"Idempotency-Key: evil", b"Accept: application/msgpack"]
FIELDS += [b"Connection: Upgrade", b"Upgrade: h2c", b"Keep-Alive: timeout=1", b"Sec-Fetch-Site: x"]
FIELDS += [b"X-Forwarded-For: 127.0.0.1", b"Forwarded: for=x", b"Age: 1", b"Date: x", b"Location: /", b"Vary: *"]
NO_HEADER = "RFC 9110, 6.5.1: a trailer is no header; it is dropped"
WHY_FRAMED = "RFC 9110, 6.5.1: a trailer cannot say how long what came before it was: refused"
rows(
    "trailer",
    ("each that is a header", chunked(chunk() + b"\r\n".join(FIELDS) + b"\r\n\r\n", behind=NEXT), "2 2", NO_HEADER),
    ("Connection: close", chunked(chunk() + b"Connection: close\r\n\r\n", behind=EVIL), "2!", "no header, but the parser reads nothing behind it: the connection ends"),
    ("a length", chunked(chunk() + b"Content-Length: 3\r\n\r\n", behind=EVIL), "4!", WHY_FRAMED),
    ("a coding", chunked(chunk() + b"Transfer-Encoding: chunked\r\n\r\n", behind=EVIL), "4!", WHY_FRAMED),
    ("an upgrade", chunked(chunk() + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", behind=NEXT), "2 2", NO_HEADER),
    ("that is folded", chunked(chunk() + b"X: y\r\n z\r\n\r\n", behind=EVIL), "4!", "RFC 9112, 5.2"),
    ("a blank before the colon", chunked(chunk() + b"X : y\r\n\r\n", behind=EVIL), "4!", "RFC 9112, 5.1"),
    ("no colon", chunked(chunk() + b"X\r\n\r\n", behind=EVIL), "4!"),
    ("an LF at its end", chunked(chunk() + b"X: y\n\r\n", behind=EVIL), "4!", WHY_LINE),
    ("a request as one", chunked(chunk() + EVIL), "4!"),
    ("not all there", chunked(chunk() + b"X: y\r\n"), ""),
    ("many", chunked(chunk() + b"X: y\r\n" * 200 + b"\r\n", behind=NEXT), "2 2", "h11 takes at most 64 KiB at once"),
    ("too many", chunked(chunk() + (b"X: " + b"y" * 1000 + b"\r\n") * 70 + b"\r\n", behind=EVIL), "4!", "more than a head may be"),
)

# ---------------------------------------------------------------------------- lines, names, values

WHY_BARE = "RFC 9112, 2.2: an LF alone may end a line; as others may not take it for one, it is refused"
rows(
    "line",
    ("LF everywhere", ask("GET").replace(b"\r\n", b"\n") + EVIL, "4!", WHY_BARE),
    ("an LF after the first", ask("GET").replace(b"\r\n", b"\n", 1) + EVIL, "4!", WHY_BARE),
    ("an LF after a header", ask("GET", b"X: y\nZ: w") + EVIL, "4!", WHY_BARE),
    ("an LF at the end", ask("GET")[:-2] + b"\n" + EVIL, "4!", WHY_BARE),
    ("a length behind an LF", ask("POST", b"X: y\n" + LENGTH, body=EVIL), "4!", WHY_BARE),
    ("a CR in a value", ask("GET", b"X: a\rb") + EVIL, "4!", "RFC 9112, 2.2: a bare CR is refused"),
    ("a length behind a CR", ask("POST", b"X: y\r" + LENGTH, body=EVIL), "4!", "RFC 9112, 2.2"),
    ("CR CR LF after a header", ask("GET", b"X: y\r") + EVIL, "4!", "RFC 9112, 2.2"),
    ("CR CR LF after the first", ask("GET", version=b"HTTP/1.1\r") + EVIL, "4!", "RFC 9112, 2.2"),
    ("CR CR at the end", ask("GET")[:-2] + b"\r\r" + EVIL, "4!", "RFC 9112, 2.2"),
    ("a value that goes on", ask("GET", b"X: a", b" b") + EVIL, "4!", "RFC 9112, 5.2: obs-fold is refused"),
    ("a value that goes on after a tab", ask("GET", b"X: a", b"\tb") + EVIL, "4!", "RFC 9112, 5.2"),
    ("a value that goes on with nothing", ask("GET", b"X: a", b" ") + EVIL, "4!", "RFC 9112, 5.2"),
    ("blanks alone first", ask("GET").replace(HOST, b" \r\n" + HOST) + EVIL, "4!", "RFC 9112, 2.2"),
    ("an empty one before", b"\r\n" + ask("GET"), "2", "RFC 9112, 2.2: at least one is ignored"),
    ("several empty ones before", b"\r\n" * 5 + ask("GET"), "2", "RFC 9112, 2.2: at least one is ignored, and others do no harm"),
    ("an empty one between", ask("GET") + b"\r\n" + NEXT, "2 2", "RFC 9112, 2.2"),
    ("an LF alone before", b"\n" + ask("GET"), "2", "RFC 9112, 2.2: an empty line, that may end with LF alone"),
    ("a blank before", b" " + ask("GET"), "4!", "RFC 9112, 3"),
    ("a NUL before", b"\0" + ask("GET"), "4!"),
    ("a mark before", b"\xef\xbb\xbf" + ask("GET"), "4!"),
    ("a NUL in a value", ask("GET", b"X: a\0b") + EVIL, "4!", "RFC 9110, 5.5: refused"),
    ("a control character in a value", ask("GET", b"X: a\x01b") + EVIL, "4!", "RFC 9110, 5.5: refused, as others may"),
    ("a DEL in a value", ask("GET", b"X: a\x7fb") + EVIL, "4!", "RFC 9110, 5.5: refused, as others may"),
    ("a vertical tab before a value", ask("GET", b"X:\x0by") + EVIL, "4!", "RFC 9110, 5.5: refused, as others may"),
    ("a tab in a value", ask("GET", b"X: a\tb") + NEXT, "2 2"),
    ("no name", ask("GET", b": y") + EVIL, "4!"),
    ("no colon", ask("GET", b"X") + EVIL, "4!"),
    ("a blank in a name", ask("GET", b"X Y: z") + EVIL, "4!"),
    ("a blank after a name", ask("GET", b"X : z") + EVIL, "4!", "RFC 9112, 5.1"),
    ("an @ in a name", ask("GET", b"X@: z") + EVIL, "4!"),
    ("a bracket in a name", ask("GET", b"X[]: z") + EVIL, "4!"),
    ("a high byte in a name", ask("GET", b"X\xe9: z") + EVIL, "4!"),
    ("a NUL in a name", ask("GET", b"X\0: z") + EVIL, "4!"),
    ("odd letters of a name", ask("GET", b"!#$%&'*+-.^_`|~: z") + NEXT, "2 2"),
)

# ---------------------------------------------------------------------------- the first line

rows(
    "first",
    ("two blanks", b"GET  /a HTTP/1.1\r\n" + HOST + b"\r\n\r\n" + NEXT, "2 2", "RFC 9112, 3: several may be taken for one"),
    ("two blanks later", b"GET /a  HTTP/1.1\r\n" + HOST + b"\r\n\r\n" + NEXT, "2 2", "RFC 9112, 3: several may be taken for one"),
    ("a blank behind", ask("GET", version=b"HTTP/1.1 ") + EVIL, "4!", "RFC 9112, 3"),
    ("a tab", b"GET\t/a\tHTTP/1.1\r\n" + HOST + b"\r\n\r\n" + EVIL, "4!", "RFC 9112, 3: a blank"),
    ("a blank in the target", ask("GET", target=b"/a /evil") + EVIL, "4!"),
    ("a line in the target", ask("GET", target=b"/a\r\n/evil") + EVIL, "4!"),
    ("a NUL in the target", ask("GET", target=b"/a\0") + EVIL, "4!"),
    ("a high byte in the target", ask("GET", target=b"/a\xff") + EVIL, "4!", "RFC 3986: no character of a URI"),
    ("a control character in the target", ask("GET", target=b"/a\x01") + EVIL, "4!"),
    ("a fragment in the target", ask("GET", target=b"/a#x") + EVIL, "4!", "RFC 9112, 3.2: a target has none"),
    ("a target without /", ask("GET", target=b"evil") + EVIL, "4!", "RFC 9112, 3.2.1"),
    ("no target", b"GET HTTP/1.1\r\n" + HOST + b"\r\n\r\n" + EVIL, "4!"),
    ("a query without a path", ask("GET", target=b"?x") + EVIL, "4!", "RFC 9112, 3.2.1"),
    ("two / first", ask("GET", target=b"//localhost/evil"), "2", "a path that begins with two"),
    ("a backslash", ask("GET", target=b"\\a") + EVIL, "4!", "RFC 9112, 3.2.1"),
    ("version 0.9", ask("GET", version=b"HTTP/0.9") + EVIL, "4!", "not a version that is spoken here"),
    ("version 2.0", ask("GET", version=b"HTTP/2.0") + EVIL, "4!", "not a version that is spoken here"),
    ("version 1.2", ask("GET", version=b"HTTP/1.2") + EVIL, "4!", "there is none"),
    ("version 3.0", ask("GET", version=b"HTTP/3.0") + EVIL, "4!", "not a version that is spoken here"),
    ("version 1.10", ask("GET", version=b"HTTP/1.10") + EVIL, "4!"),
    ("version 01.1", ask("GET", version=b"HTTP/01.1") + EVIL, "4!"),
    ("version 1,1", ask("GET", version=b"HTTP/1,1") + EVIL, "4!"),
    ("version 1", ask("GET", version=b"HTTP/1") + EVIL, "4!"),
    ("http in small letters", ask("GET", version=b"http/1.1") + EVIL, "4!"),
    ("RTSP", ask("OPTIONS", version=b"RTSP/1.0") + EVIL, "2!", "another protocol, which the parser takes for HTTP/1.0: one request, and the end"),
    ("RTSP's own", ask("DESCRIBE", version=b"RTSP/1.0") + EVIL, "2!", "another protocol, which the parser takes for HTTP/1.0: one request, and the end"),
    ("ICE", ask("SOURCE", version=b"ICE/1.0") + EVIL, "2!", "another protocol, which the parser takes for HTTP/1.0: one request, and the end"),
    ("a method in small letters", ask("get") + EVIL, "4!", "RFC 9110, 9.1: they are case-sensitive; no method is called that"),
    ("a method that nobody knows", ask("FROB") + EVIL, "4!", "no method is called that; 501 would be as good"),
    ("a method that is long", ask("A" * 5000) + EVIL, "4!", "no method is called that"),
    ("HTTP/0.9", b"GET /evil\r\n\r\n", "4!", "no version is none that is spoken here"),
    ("HTTP/0.9, at once the next", b"GET /evil\r\n" + EVIL, "4!", "no version is none that is spoken here"),
    ("HTTP/2 with prior knowledge", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", "4!", "not a version that is spoken here"),
    ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(64)), "4!"),
    ("an answer", b"HTTP/1.1 200 OK\r\n\r\n", "4!"),
    ("a command", b"EHLO evil\r\n", "4!"),
    ("a proxy's line", b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n" + EVIL, "4!"),
)

# ---------------------------------------------------------------------------- where a request is for

WHY_ONE_HOST = "RFC 9112, 3.2: a request without a Host, with two or with one that is none is told 400"
BAD_HOSTS = [b"a b", b"a/b", b"a,b", b"u@a", b"a:80:80", b"a:x", b"[::1", b"::1", b"a?b", b"a#b", b"<a>", b"http://a", b"\xe9"]
BAD_HOSTS += [b"a\\b", b"[::1]x", b"[", b"a:-1", b'"a"']


def at(host: bytes, *lines: bytes, target: bytes = b"/a") -> bytes:
    """A GET with this Host alone."""
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: " + host, *lines, b"", b""])


rows(
    "host",
    *[(repr(each), at(each) + EVIL, "4!", WHY_ONE_HOST) for each in BAD_HOSTS],
    *[(f"{each!r} is one", at(each) + NEXT, "2 2") for each in (b"a", b"a:80", b"a:", b"127.0.0.1:1", b"[::1]", b"[::1]:80", b"a_b.c-d", b"A.B", b"a%20b", b"")],
    ("blanks around", at(b" \t a \t") + NEXT, "2 2"),
    ("none", b"GET /a HTTP/1.1\r\n\r\n" + EVIL, "4!", WHY_ONE_HOST),
    ("none of HTTP/1.0", b"GET /a HTTP/1.0\r\n\r\n" + EVIL, "2!", "RFC 9112, 3.2: HTTP/1.0 has none; its connection ends"),
    ("two", ask("GET", b"Host: evil") + EVIL, "4!", WHY_ONE_HOST),
    ("the same twice", ask("GET", HOST) + EVIL, "4!", WHY_ONE_HOST),
    ("two of HTTP/1.0", ask("GET", b"Host: evil", version=b"HTTP/1.0") + EVIL, "4!", WHY_ONE_HOST),
    ("two with other letters", ask("GET", b"HOST: evil") + EVIL, "4!", WHY_ONE_HOST),
    ("a blank before the colon", b"GET /a HTTP/1.1\r\nHost : a\r\n\r\n" + EVIL, "4!", "RFC 9112, 5.1"),
    ("two keys", ask("GET", b"Authorization: Bearer a", b"Authorization: Bearer b") + EVIL, "4!", "RFC 9110, 5.3: a field that is no list comes once"),
    ("two keys of idempotency", sized(b"Idempotency-Key: a", b"Idempotency-Key: b"), "4!", "a field that is no list comes once"),
    ("the same key of idempotency twice", sized(b"Idempotency-Key: a", b"idempotency-key: a"), "4!", "a field that is no list comes once"),
    ("two types", sized(b"Content-Type: a/b", b"Content-Type: c/d"), "4!", "RFC 9110, 5.3: a field that is no list comes once"),
    ("two origins", ask("GET", b"Origin: http://a", b"Origin: http://b") + EVIL, "4!", "RFC 6454, 7.3: once"),
    ("two cookies", ask("GET", b"Cookie: a=b", b"Cookie: c=d") + NEXT, "2 2"),
)

WHY_FORM = "RFC 9112, 3.2: none of the four forms, or not that of this method"
rows(
    "form",
    ("absolute", ask("GET", target=b"http://other/a") + NEXT, "2 2"),
    ("absolute with a port", ask("GET", target=b"http://other:80/a?b") + NEXT, "2 2"),
    ("absolute of IPv6", ask("GET", target=b"http://[::1]:80/a") + NEXT, "2 2"),
    ("absolute, https", ask("GET", target=b"https://other/a") + NEXT, "2 2"),
    ("absolute without a path", ask("GET", target=b"http://other") + NEXT, "2 2", "RFC 9112, 3.2.2: its path is /"),
    ("absolute with a query alone", ask("GET", target=b"http://other?x") + NEXT, "2 2", "RFC 9112, 3.2.2: its path is /"),
    ("absolute in capitals", ask("GET", target=b"HTTP://OTHER/a") + NEXT, "2 2"),
    ("absolute without a Host", b"GET http://other/a HTTP/1.1\r\n\r\n" + EVIL, "4!", WHY_ONE_HOST),
    ("absolute for somebody", ask("GET", target=b"http://user@other/a") + EVIL, "4!", "RFC 9110, 4.2.4: userinfo is an error"),
    ("absolute without a host", ask("GET", target=b"http:///evil") + EVIL, "4!", "RFC 9110, 4.2.1: refused"),
    ("absolute, of another scheme", ask("GET", target=b"ftp://other/evil") + EVIL, "4!", WHY_FORM),
    ("absolute, of a script", ask("GET", target=b"javascript:evil") + EVIL, "4!", WHY_FORM),
    ("absolute with a strange port", ask("GET", target=b"http://other:x/evil") + EVIL, "4!", WHY_FORM),
    ("absolute with a port too large", ask("GET", target=b"http://other:99999999/evil") + EVIL, "4!", WHY_FORM),
    ("authority", ask("GET", target=b"other:80") + EVIL, "4!", WHY_FORM),
    ("asterisk", ask("GET", target=b"*") + EVIL, "4!", WHY_FORM),
    ("asterisk of OPTIONS", ask("OPTIONS", target=b"*") + EVIL, "4!", "RFC 9112, 3.2.4: allowed; there is nothing here to ask that of"),
    ("CONNECT", ask("CONNECT", target=b"other:80") + EVIL, "4!", "RFC 9110, 9.3.6: no tunnel here"),
    ("CONNECT with a length", ask("CONNECT", LENGTH, target=b"other:80") + EVIL, "4!", "RFC 9110, 9.3.6: no tunnel here"),
    ("CONNECT to a path", ask("CONNECT") + EVIL, "4!", "RFC 9112, 3.2.3"),
    ("CONNECT with an upgrade", ask("CONNECT", b"Connection: Upgrade", b"Upgrade: h2c", target=b"other:80") + EVIL, "4!", "no tunnel here"),
)

# ---------------------------------------------------------------------------- another protocol

UP = (b"Connection: Upgrade", b"Upgrade: h2c")
WHY_UP = "RFC 9110, 7.8: an offer may be ignored, and is: the request is one as any other"
JAVA = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__")
SOCKET = (b"Connection: keep-alive, Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: AA==")
LATE = b"X-Long: " + b"y" * 65_520
rows(
    "upgrade",
    *[(f"{name}, get", ask("GET", *lines) + NEXT, "2 2", WHY_UP) for name, lines in (("h2c", UP), ("java", JAVA), ("websocket", SOCKET))],
    *[(f"{name}, length", sized(*lines), "2 2", WHY_UP) for name, lines in (("h2c", UP), ("java", JAVA), ("websocket", SOCKET))],
    *[(f"{name}, chunks", chunked(chunk() + b"\r\n", *lines, behind=NEXT), "2 2", WHY_UP) for name, lines in (("h2c", UP), ("java", JAVA), ("websocket", SOCKET))],
    ("behind the length", ask("POST", LENGTH, *UP, body=EVIL) + NEXT, "2 2", WHY_UP),
    ("several", sized(*UP)[: -len(NEXT)] * 5 + NEXT, "2 2 2 2 2 2", WHY_UP),
    ("not connected", sized(b"Upgrade: h2c"), "2 2", WHY_UP),
    ("only connected", sized(b"Connection: Upgrade"), "2 2", WHY_UP),
    ("head", ask("HEAD", *UP) + NEXT, "2 2", WHY_UP),
    ("expects", sized(*UP, b"Expect: 100-continue"), "2 2", WHY_UP),
    ("and close", sized(b"Connection: Upgrade, close", b"Upgrade: x").replace(NEXT, EVIL), "2!", "RFC 9112, 9.6: close ends it, whatever else is there"),
    ("close, and", sized(b"Connection: close, Upgrade", b"Upgrade: x").replace(NEXT, EVIL), "2!", "RFC 9112, 9.6"),
    ("close on a line before", sized(b"Connection: close", *UP).replace(NEXT, EVIL), "2!", "RFC 9112, 9.6"),
    ("close on a line behind", sized(*UP, b"Connection: close").replace(NEXT, EVIL), "2!", "RFC 9112, 9.6"),
    ("and close, without a body", ask("GET", b"Connection: Upgrade, close", b"Upgrade: x") + EVIL, "2!", "RFC 9112, 9.6"),
    ("and keep-alive", sized(b"Connection: Upgrade, keep-alive", b"Upgrade: x"), "2 2", WHY_UP),
    ("of HTTP/1.0", ask("GET", *UP, version=b"HTTP/1.0") + EVIL, "2!", "RFC 9110, 7.8: ignored of HTTP/1.0, whose connection ends"),
    ("two lengths", ask("POST", *UP, b"Content-Length: 0", LENGTH, body=EVIL), "4!", WHY_TWICE),
    ("both lengths", ask("POST", *UP, b"Transfer-Encoding: chunked", LENGTH, body=EVIL), "4!", WHY_BOTH),
    ("a coding", ask("POST", *UP, b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n" + EVIL), "4!", GUNZIP),
    ("no length", ask("POST", *UP, b"Content-Length: -1", body=EVIL), "4!", WHY_LENGTH),
    ("two hosts", ask("GET", *UP, b"Host: evil") + EVIL, "4!", WHY_ONE_HOST),
    ("a trailer", chunked(chunk() + b"Host: evil\r\n\r\n", *UP, behind=NEXT), "2 2", NO_HEADER),
    ("a length too late", ask("POST", *UP, LATE, LENGTH, body=EVIL) + EVIL, "4!", "a head of which a part is not kept is no head"),
    ("chunks too late", ask("POST", *UP, LATE, b"Transfer-Encoding: chunked", body=chunk() + b"\r\n") + EVIL, "4!", "as before"),
    ("an offer too late", ask("POST", LATE, LENGTH, *UP, body=EVIL) + EVIL, "4!", "as before"),
    ("a length too late, by many headers", ask("POST", *UP, *[b"X: " + b"y" * 993] * 66, LENGTH, body=EVIL) + EVIL, "4!", "as before"),
    ("close too late", ask("GET", *UP, LATE, b"Connection: close") + EVIL, "4!", "as before"),
    ("behind what closed", ask("GET", b"Connection: close") + ask("GET", *UP, target=b"/evil"), "2!", "RFC 9112, 9.6: nothing is read after close"),
    ("behind what was refused", ask("GET", b"Host: evil") + ask("GET", *UP, target=b"/evil"), "4!", "nothing is read after that"),
    ("its bytes first", ask("GET", *UP) + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "2 4!", "it was not taken up: what follows is to be HTTP/1.1"),
    ("bad chunks", chunked(b"x\r\n", *UP, behind=EVIL), "4!", WHY_SIZE),
    ("not all there", ask("POST", *UP, LENGTH, body=EVIL[:-1]), "", WHY_UP),
)

# ---------------------------------------------------------------------------- too much

WHY_MUCH = "more than a head may be: 64 KiB; the others have no limit, or one of their own"
rows(
    "much",
    ("a header", ask("POST", b"X: " + b"y" * 70_000, LENGTH, body=EVIL) + EVIL, "4!", WHY_MUCH),
    ("headers", ask("GET", *[b"X%d: y" % n for n in range(9000)]) + EVIL, "4!", WHY_MUCH),
    ("a name", ask("GET", b"y" * 70_000 + b": x") + EVIL, "4!", WHY_MUCH),
    ("a target", ask("GET", target=b"/" + b"a" * 70_000) + EVIL, "4!", WHY_MUCH),
    ("a length behind it", ask("POST", LATE, LENGTH, body=EVIL) + EVIL, "4!", WHY_MUCH),
    ("chunks behind it", ask("POST", LATE, b"Transfer-Encoding: chunked", body=chunk() + b"\r\n") + EVIL, "4!", WHY_MUCH),
    ("a length before it", ask("POST", LENGTH, LATE, b"X: y", body=EVIL) + EVIL, "4!", WHY_MUCH),
    ("just as much as may be", ask("GET", b"X: " + b"y" * 60_000) + NEXT, "2 2"),
    ("as much as may be, twice", ask("GET", b"X: " + b"y" * 60_000) * 2, "2 2"),
    ("many headers", ask("GET", *[b"X%d: y" % n for n in range(2000)]) + NEXT, "2 2"),
    ("a long target", ask("GET", target=b"/" + b"a" * 60_000) + NEXT, "2 2"),
    ("requests ahead, as many as may be", NEXT * 33, " ".join("2" * 33)),
)

# ---------------------------------------------------------------------------- the end of a connection

WHY_END = "RFC 9112, 9.6: nothing is read behind a request that closes"
rows(
    "end",
    ("close", ask("GET", b"Connection: close"), "2!"),
    ("close and another", ask("GET", b"Connection: close") + EVIL, "2!", WHY_END),
    ("close in capitals", ask("GET", b"CONNECTION: CLOSE") + EVIL, "2!", WHY_END),
    ("close among others", ask("GET", b"Connection: x, close ,y") + EVIL, "2!", WHY_END),
    ("close on a second line", ask("GET", b"Connection: x", b"Connection: close") + EVIL, "2!", WHY_END),
    ("keep-alive and close", ask("GET", b"Connection: keep-alive, close") + EVIL, "2!", WHY_END),
    ("close and keep-alive", ask("GET", b"Connection: close", b"Connection: keep-alive") + EVIL, "2!", WHY_END),
    ("close with a body", sized(b"Connection: close").replace(NEXT, EVIL), "2!", WHY_END),
    ("close with chunks", chunked(chunk() + b"\r\n", b"Connection: close", behind=EVIL), "2!", WHY_END),
    ("close with a trailer", chunked(chunk() + b"X: y\r\n\r\n", b"Connection: close", behind=EVIL), "2!", WHY_END),
    ("close and garbage", ask("GET", b"Connection: close") + b"\0\0\0", "2!", WHY_END),
    ("close and bad chunks", chunked(b"x\r\n", b"Connection: close", behind=EVIL), "4!"),
    ("closed", ask("GET", b"Connection: closed") + NEXT, "2 2"),
    ("keep-alive", ask("GET", b"Connection: keep-alive") + NEXT, "2 2"),
    ("HTTP/1.0", ask("GET", version=b"HTTP/1.0") + EVIL, "2!", "RFC 9112, 9.3"),
    ("HTTP/1.0 and keep-alive", ask("GET", b"Connection: keep-alive", version=b"HTTP/1.0") + EVIL, "2!", "RFC 9112, 9.3: it may close, and does"),
    ("HTTP/1.0 with a body", sized().replace(b"HTTP/1.1", b"HTTP/1.0", 1).replace(NEXT, EVIL), "2!", "RFC 9112, 9.3"),
    ("HTTP/1.0 without a length", ask("POST", version=b"HTTP/1.0") + EVIL, "2!", "RFC 9112, 6.3: no length is none"),
    ("the second closes", ask("GET") + ask("GET", b"Connection: close") + EVIL, "2 2!", WHY_END),
    ("garbage behind one", ask("GET") + b"\0\0\0", "2 4!"),
    ("garbage behind several", ask("GET") + NEXT * 3 + b"x y\r\n\r\n" + EVIL, "2 2 2 2 4!", "what was asked before is answered"),
    ("a bad length behind one", ask("GET") + ask("POST", b"Content-Length: x", body=EVIL), "2 4!", WHY_LENGTH),
    ("bad chunks behind one", ask("GET") + chunked(b"x\r\n", behind=EVIL), "2 4!", WHY_SIZE),
    ("a request behind a bad one", ask("GET", b"Host: evil") + NEXT.replace(b"/next", b"/evil"), "4!", WHY_ONE_HOST),
    ("too much behind one", ask("GET") + ask("GET", LATE, b"X: y") + EVIL, "2 4!", WHY_MUCH),
)

# ---------------------------------------------------------------------------- to be told to go on

rows(
    "expect",
    ("100-continue", sized(b"Expect: 100-continue"), "2 2"),
    ("100-continue in capitals", sized(b"Expect: 100-CONTINUE"), "2 2"),
    ("100-continue of chunks", chunked(chunk() + b"\r\n", b"Expect: 100-continue", behind=NEXT), "2 2"),
    ("100-continue without a body", ask("GET", b"Expect: 100-continue") + NEXT, "2 2"),
    ("100-continue of HTTP/1.0", sized(b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0", 1).replace(NEXT, EVIL), "2!", "RFC 9110, 10.1.1: ignored of HTTP/1.0"),
    ("something else", sized(b"Expect: the worst"), "2 2", "RFC 9110, 10.1.1: 417 may be said; it is ignored"),
    ("and a bad length", ask("POST", b"Expect: 100-continue", b"Content-Length: x", body=EVIL), "4!", WHY_LENGTH),
    ("and close", sized(b"Expect: 100-continue", b"Connection: close").replace(NEXT, EVIL), "2!", WHY_END),
)
