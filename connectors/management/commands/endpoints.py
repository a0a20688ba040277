"""`endpoints list / create / rotate / reverify / disable / enable / remove`."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from pydantic import ValidationError

from connectors import durations
from connectors.audit_log import cli_actor
from connectors.configuration import endpoints, stored_secrets
from connectors.configuration.change import require_unlocked
from connectors.configuration.endpoints import EndpointDraft
from connectors.configuration.errors import BadConfiguration, option_sentences
from connectors.configuration.file import EndpointSection
from connectors.configuration.stored_secrets import Secret
from connectors.configuration.values import slug
from connectors.ingress.limit_values import LIMIT_NAMES, EndpointLimits
from connectors.ingress.paths import ingress_path
from connectors.management.configuration_command import ConfigurationCommand, add_namespace, add_reason
from connectors.operations.reverify import reverify
from connectors.states import EndpointState
from projection.cli import DONE, FINDINGS, add_confirmation, confirm, demand_reason, iso, refusal, table

SETTINGS: Final = ("account", "public_url", "signature", "unverified", *LIMIT_NAMES)


class Command(ConfigurationCommand):
    help = "Lists, creates, disables and removes ingress URLs, rotates their secrets, accepts kept deliveries that verify now."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        add_namespace(self.add_verb(verbs, "list", self.list, "list endpoints; secrets are counted, never shown"))
        create = self.add_verb(verbs, "create", self.create, "create an ingress URL for an installed pack")
        create.add_argument("pack", help="installed pack")
        create.add_argument("name", metavar="SLUG", help="last part of the URL")
        _add_secret(create, action="append")
        create.add_argument("--account", help="whose data it receives; endpoints of one account are one sender (default: the slug)")
        create.add_argument("--public-url", help="scheme and host that the provider posts to (default: HEADRACE_PUBLIC_URL)")
        create.add_argument("--signature", help="signature scheme (default: the pack's own)")
        create.add_argument(
            "--unverified",
            choices=["keep", "refuse"],
            help="deliveries with a bad signature: keep each for 1 h, within 24 h after creation or rotation (default), or refuse",
        )
        create.add_argument("--max-body-bytes", type=int, help="largest accepted body (default: the pack's)")
        create.add_argument("--limit", help="rate limit, e.g. 200/s; more are answered 429 (default: no limit)")
        create.add_argument("--concurrency", type=int, help="concurrent requests; more are answered 429 (default: no limit)")
        create.add_argument(
            "--spool",
            action=BooleanOptionalAction,
            help="spool deliveries on this host while the database is unavailable (default: if the provider does not retry)",
        )
        rotate = self.add_verb(verbs, "rotate", self.rotate, "activate a new secret; the old one stays valid for the overlap")
        rotate.add_argument("name", metavar="SLUG", help="endpoint")
        _add_secret(rotate, action="store")
        rotate.add_argument(
            "--overlap", default="24h", help="how long the old secret stays valid, e.g. 1h; 0s = it expires immediately"
        )
        reverify = self.add_verb(
            verbs, "reverify", self.reverify, "accept kept deliveries whose signature the current secrets verify"
        )
        reverify.add_argument("name", metavar="SLUG", help="endpoint")
        disable = self.add_verb(
            verbs, "disable", self.disable, "disable an endpoint: refuse deliveries with 503, so that the provider retries"
        )
        disable.add_argument("--discard", action="store_true", help="answer 410 instead, so that the provider stops sending")
        enable = self.add_verb(verbs, "enable", self.enable, "enable a disabled endpoint: accept deliveries again")
        remove = self.add_verb(
            verbs, "remove", self.remove, "remove an endpoint: it answers 404; what it received is still processed"
        )
        for sub in (disable, enable, remove):
            sub.add_argument("name", metavar="SLUG", help="endpoint")
        for sub in (create, rotate, reverify, disable, enable, remove):
            add_namespace(sub)
            add_reason(sub)
        add_confirmation(remove)

    def list(self, *, namespace: str, **_options: Any) -> int:
        found = endpoints.lines(namespace)
        rows = [
            (line.slug, line.pack, line.account, line.state, line.path, line.live_secrets, line.unverified, iso(line.rotated_at))
            for line in found
        ]
        headers = ["endpoint", "pack", "account", "state", "path", "secrets", "unverified", "rotated"]
        self.emit({"endpoints": [asdict(line) for line in found]}, table(headers, rows))
        return DONE

    def create(self, *, namespace: str, pack: str, reason: str, **options: Any) -> int:
        require_unlocked()
        values, fresh = _secrets(options["secret"] or [], options["generate_secret"])
        draft = _draft(pack, options, values)
        endpoint = endpoints.create(namespace, draft, actor=cli_actor(), reason=reason)
        path = ingress_path(endpoint.namespace, endpoint.slug)
        answer = {"slug": endpoint.slug, "pack": pack, "path": path, **_shown_once(fresh)}
        self.emit({"created": answer}, [f"created {path} for {pack}", *_fresh_lines(fresh)])
        return DONE

    def rotate(
        self, *, namespace: str, reason: str, secret: str | None, generate_secret: bool, overlap: str, **options: Any
    ) -> int:
        require_unlocked()
        (value,), fresh = _secrets([secret] if secret else [], generate_secret, needed=True)
        try:
            window = timedelta(seconds=durations.seconds(overlap))
        except ValueError as error:
            raise CommandError(f"--overlap: {error}") from None
        done = endpoints.rotate(namespace, options["name"], value, actor=cli_actor(), reason=reason, overlap=window)
        answer = {"slug": done.slug, "old_ends_at": iso(done.old_ends_at), "stopped_at_once": done.stopped_at_once}
        old = f"the old secret is valid until {iso(done.old_ends_at)}" if done.old_ends_at else "no old secret is valid"
        stopped = [f"{done.stopped_at_once} older secrets expired immediately"] if done.stopped_at_once else []
        self.emit({"rotated": answer | _shown_once(fresh)}, [f"rotated {done.slug}; {old}", *stopped, *_fresh_lines(fresh)])
        return DONE

    def disable(self, *, namespace: str, name: str, reason: str, discard: bool, **_options: Any) -> int:
        require_unlocked()
        changed = endpoints.disable(namespace, name, actor=cli_actor(), reason=reason, discard=discard)
        answer = {"name": name, "state": EndpointState.DISABLED, "changed": changed}
        self.emit(answer, [f"{name} is disabled: deliveries are answered {410 if discard else 503}"])
        return DONE

    def enable(self, *, namespace: str, name: str, reason: str, **_options: Any) -> int:
        require_unlocked()
        changed = endpoints.enable(namespace, name, actor=cli_actor(), reason=reason)
        self.emit({"name": name, "state": EndpointState.ENABLED, "changed": changed}, [f"{name} accepts deliveries"])
        return DONE

    def remove(self, *, namespace: str, name: str, reason: str, yes: bool, **_options: Any) -> int:
        require_unlocked()
        what = f"removes endpoint {name} and its secrets"
        demand_reason(what, reason)
        confirm(what, name, yes=yes)
        endpoints.remove(namespace, name, actor=cli_actor(), reason=reason)
        self.emit({"removed": {"slug": name}}, [f"removed {name}"])
        return DONE

    def reverify(self, *, namespace: str, reason: str, **options: Any) -> int:
        done = reverify(endpoints.facts(namespace, options["name"]), actor=cli_actor(), reason=reason)
        refused = [refusal(each.unverified_id, "unverified", each.reason) for each in done.refused]
        lines = [f"{each.code}: delivery {each.unverified_id} → receipt {each.receipt_id}" for each in done.admitted]
        lines += [f"still not verified: delivery {each['id']}: {each['reason']}" for each in refused]
        lines = [*(lines or ["no kept deliveries"]), *filter(None, [done.loss])]
        self.emit({"admitted": [asdict(each) for each in done.admitted], "refused": refused, "not_kept": done.not_kept}, lines)
        return FINDINGS if refused else DONE


def _add_secret(parser: CommandParser, *, action: str) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--secret", action=action, metavar="REF", help="env:NAME, file:/path or plain:VALUE")
    group.add_argument("--generate-secret", action="store_true", help="generate a random secret and print it once")


def _secrets(references: list[str], generate: bool, *, needed: bool = False) -> tuple[tuple[Secret, ...], Secret | None]:
    """The secrets that the options name, and the one that was made for them. Raises CommandError, SecretRefused."""
    if generate:
        fresh = stored_secrets.generated()
        return (fresh,), fresh
    if needed and not references:
        raise CommandError("no new secret given; use --secret env:NAME (or file:/path, plain:VALUE), or --generate-secret")
    return tuple(stored_secrets.from_reference(reference, "--secret") for reference in references), None


def _draft(pack: str, options: dict[str, Any], values: tuple[Secret, ...]) -> EndpointDraft:
    members = {name: options[name] for name in SETTINGS if options[name] is not None}
    try:
        section = EndpointSection.model_validate(members)
        limits = EndpointLimits(**section.model_dump(include=set(LIMIT_NAMES)))
        others = section.model_dump(exclude={"secrets", *LIMIT_NAMES})
        return EndpointDraft(pack_name=pack, slug=slug(options["name"]), secrets=values, limits=limits, **others)
    except ValidationError as error:
        raise BadConfiguration(option_sentences(error, EndpointSection)) from None
    except ValueError as error:
        raise BadConfiguration([f"SLUG: {error}"]) from None


def _shown_once(fresh: Secret | None) -> dict[str, str]:
    return {"secret": fresh.value} if fresh else {}


def _fresh_lines(fresh: Secret | None) -> list[str]:
    return [f"secret (shown only once): {fresh.value}"] if fresh else []
