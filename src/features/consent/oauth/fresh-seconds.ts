/** How long an answer without caching headers counts as fresh, and the maximum for all answers, in seconds. */
const [USUAL_S, LONGEST_S] = [300, 86_400];

/**
 * For how many seconds an answer of another server can be reused (RFC 9111, sections 4.2 and 5.2.2).
 * @param header the value of one of its headers, by its name in lower case
 */
export function freshSeconds(header: (name: string) => string | null | undefined): number {
  const control = header('cache-control')?.toLowerCase() ?? '';
  if (/(?:^|[\s,])no-(?:store|cache)\b/.test(control)) return 0;
  const maxAge = /(?:^|[\s,])max-age=\s*"?(\d{1,10})/.exec(control)?.[1];
  const expires = header('expires');
  const until = (Date.parse(expires ?? '') - (Date.parse(header('date') ?? '') || Date.now())) / 1000;
  const unsaid = expires ? 0 : USUAL_S;
  const lasts = maxAge === undefined ? (Number.isNaN(until) ? unsaid : until) : Number(maxAge);
  return Math.min(Math.max(lasts - (Number(header('age')) || 0), 0), LONGEST_S);
}
