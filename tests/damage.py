"""Files as a bad disk or a careless hand leaves them."""


def damaged(content, random):
    """A few bytes changed, cut out, put in or doubled."""
    content = bytearray(content)
    for _ in range(random.randint(1, 4)):
        content = content or bytearray(b"\n")
        place, kind = random.randrange(len(content)), random.randrange(4)
        if kind == 0:
            content[place] = random.randrange(256)
        elif kind == 1:
            del content[place : place + random.randint(1, 40)]
        else:
            more = (
                random.randbytes(random.randint(1, 8)) if kind == 2 else content[max(0, place - 20) : place]
            )
            content[place:place] = more
    return bytes(content)
