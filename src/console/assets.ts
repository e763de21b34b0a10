import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Hono } from 'hono';
import type { BearerEnv } from '../http/index.ts';
import { PAGE_HEADERS } from './page-headers.ts';

/** A file that pages load. */
interface Asset {
  /** With a hash of what is in it: one that changes has another name. */
  readonly name: string;
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly compressed: Uint8Array<ArrayBuffer>;
}

/** What the pages of the console load, as `npm run build` makes it. */
export interface Assets {
  readonly script: Asset;
  readonly style: Asset;
  readonly icon: Asset;
}

/** Reads them once. */
export function readAssets(): Assets {
  return {
    script: read('js', 'text/javascript; charset=utf-8'),
    style: read('css', 'text/css; charset=utf-8'),
    icon: read('svg', 'image/svg+xml'),
  };
}

function read(extension: string, type: string): Asset {
  // The same from the sources and from `dist`.
  const body = new Uint8Array(readFileSync(fileURLToPath(import.meta.resolve(`#console/console.${extension}`))));
  const version = hash('sha256', body, 'hex').slice(0, 12);
  return { name: `console-${version}.${extension}`, type, body, compressed: new Uint8Array(gzipSync(body)) };
}

/** Adds their addresses, which need no key: they say nothing of the service. */
export function addAssets(app: Hono<BearerEnv>, path: string, assets: Assets): void {
  for (const { name, type, body, compressed } of Object.values(assets) as Asset[])
    app.get(`${path}/assets/${name}`, (c) => {
      const isCompressed = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
      return c.body(isCompressed ? compressed : body, 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'X-Content-Type-Options': 'nosniff',
        'Cross-Origin-Resource-Policy': PAGE_HEADERS['Cross-Origin-Resource-Policy'],
        Vary: 'Accept-Encoding',
        ...(isCompressed && { 'Content-Encoding': 'gzip' }),
      });
    });
}
