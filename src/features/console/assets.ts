import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Hono } from 'hono';
import type { BearerEnv } from '../../http/index.ts';

/**
 * Content Security Policy of pages: only our own script and style sheet load, forms go only to us, no other page can
 * embed them, and no script turns text into HTML (Trusted Types).
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

/** Headers of every page, in addition to those of every reply. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
} as const;

/**
 * Headers of a page that can lead to another site, which can still get the answer if it opened the page.
 * @param target where forms can lead besides this service, as a CSP source: browsers apply it to redirects as well
 * @param hasScript allows our own script
 */
export function plainPageHeaders(target?: string, hasScript = false): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    ...(hasScript ? ["script-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"] : []),
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    `form-action 'self'${target === undefined ? '' : ` ${target}`}`,
    "frame-ancestors 'none'",
  ].join('; ');
  return { 'Content-Security-Policy': policy, 'Referrer-Policy': 'same-origin', 'X-Frame-Options': 'DENY' };
}

/** A file that pages load. */
interface Asset {
  /** Contains a hash of the contents, so that a changed file gets a new name. */
  readonly name: string;
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Compressed on first use. */
  readonly compressed: () => Uint8Array<ArrayBuffer>;
}

/** Files of the pages, built by `npm run build`, and the name of the service. */
export interface Assets {
  /** The name of the service. */
  readonly brand: string;
  readonly script: Asset;
  readonly style: Asset;
  readonly icon: Asset;
}

/** Reads the files once. */
export function readAssets(brand = 'svc-api'): Assets {
  return {
    brand,
    script: read('js', 'text/javascript; charset=utf-8'),
    style: read('css', 'text/css; charset=utf-8'),
    icon: read('svg', 'image/svg+xml'),
  };
}

function read(extension: string, type: string): Asset {
  // Resolves both in the sources and in `dist`.
  const body = new Uint8Array(readFileSync(fileURLToPath(import.meta.resolve(`#console/console.${extension}`))));
  const version = hash('sha256', body, 'hex').slice(0, 12);
  let compressed: Uint8Array<ArrayBuffer> | undefined;
  return {
    name: `console-${version}.${extension}`,
    type,
    body,
    compressed: () => (compressed ??= new Uint8Array(gzipSync(body))),
  };
}

/** Adds the addresses of the files. They need no key, because they contain nothing about the service. */
export function addAssets(app: Hono<BearerEnv>, path: string, { script, style, icon }: Assets): void {
  for (const { name, type, body, compressed } of [script, style, icon])
    app.get(`${path}/assets/${name}`, (c) => {
      const isCompressed = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
      return c.body(isCompressed ? compressed() : body, 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'X-Content-Type-Options': 'nosniff',
        'Cross-Origin-Resource-Policy': PAGE_HEADERS['Cross-Origin-Resource-Policy'],
        Vary: 'Accept-Encoding',
        ...(isCompressed && { 'Content-Encoding': 'gzip' }),
      });
    });
}
