/**
 * What a page may do: load our own script and style sheet, and send its forms to us. Nothing else is loaded or run,
 * nobody else shows it, and no script makes HTML of a text (Content Security Policy 3, Trusted Types).
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The headers of every page, beside those of every reply. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
} as const;

/**
 * The headers of a page without scripts, which may lead to another site: one that has opened it still gets its answer.
 * @param target where its forms may lead besides the service itself, as a source of a Content-Security-Policy: browsers
 * go by that for redirects, too
 */
export function plainPageHeaders(target?: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    `form-action 'self'${target === undefined ? '' : ` ${target}`}`,
    "frame-ancestors 'none'",
  ].join('; ');
  return { 'Content-Security-Policy': policy, 'Referrer-Policy': 'same-origin', 'X-Frame-Options': 'DENY' };
}
