/** Commands that our own program has at its top as well, where in a host it would take names that the host may want. */
const AT_TOP =
  /^apikey:(?=(autocomplete|login|logout|doctor|backup|restore|compact|guard|proxy|routes|notices|federation|edges?|plugins)(:|$))/;

/** The shorter id of a command in our own program; undefined for one that has no other. */
export function shortId(id: string): string | undefined {
  return AT_TOP.test(id) ? id.replace(AT_TOP, '') : undefined;
}
