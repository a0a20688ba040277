"use strict";
// The zone of the times: this browser's own, or UTC where somebody chose it. The server reads it from a cookie and converts.
{
  const NAME = "headrace_zone";
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const kept = document.cookie.split("; ").find((one) => one.startsWith(`${NAME}=`))?.slice(NAME.length + 1);

  const keep = (zone) => {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `${NAME}=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
  };

  // Who travels takes the zone along; who chose UTC keeps it.
  if (/^[\w+\/-]+$/.test(own) && kept !== "UTC" && kept !== own) keep(own);

  const button = document.querySelector("[data-zone-switch]");
  const isUtc = (zone) => /^(Etc\/)?(UTC|GMT|UCT|Zulu|Universal)$/.test(zone);
  // A secret that is shown once would be gone with the page.
  if (button && !isUtc(own) && !document.querySelector(".once")) {
    const shown = button.dataset.zoneSwitch;
    const other = isUtc(shown) ? own : "UTC";
    button.hidden = false;
    button.title = `Times are in ${shown}. Switch to ${other}.`;
    button.addEventListener("click", () => {
      keep(other);
      location.reload();
    });
  }
}
