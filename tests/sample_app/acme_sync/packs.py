"""The provider: Acme posts `{"events": [{"id": …, "type": …}, …]}` and signs the body."""

from connectors.pack import Inbound, Pack, hmac_sha256, json_items


class Acme(Pack):
    name, version, signature = "acme", "1", hmac_sha256(header="X-Acme-Signature", encoding="hex")

    def delivery_id(self, request):
        return request.headers.get("X-Acme-Id")

    def split(self, body):
        return json_items(body, "events")

    def read(self, item):
        return Inbound(kind=item["type"], source=("order", item["id"]), lane=f"order:{item['id']}")
