import { hash } from 'node:crypto';
import { html, raw } from 'hono/html';

/** A page, and the headers that keep it what it is. */
export interface Page {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A part of a page, in which all values are escaped. */
export type Html = ReturnType<typeof html>;

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 1.5rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
dt { font-weight: 600; }
dd { margin: 0 0 .5rem; }
fieldset { border: 1px solid; border-radius: .3rem; margin: 1rem 0; }
label { display: block; margin: .5rem 0; }
label small { display: block; }
input:not([type=checkbox]), button { font: inherit; padding: .4rem .6rem; }
input:not([type=checkbox]) { width: 100%; box-sizing: border-box; }
button { margin: .5rem .5rem .5rem 0; }
.problem { border-left: .3rem solid; padding-left: .7rem; font-weight: 600; }
`;
/** Its text is to be what the policy has the hash of, without a space more. */
const STYLE_ELEMENT = raw(`<style>${STYLE}</style>`);
const STYLE_HASH = hash('sha256', STYLE, 'base64');

/**
 * Makes a page that loads and runs nothing, that no other page shows, and of which nobody keeps or passes on anything.
 * @param targets where its forms may lead besides the service itself, as sources of a Content-Security-Policy: browsers
 * go by that for redirects, too
 */
export async function pageOf(title: string, content: Html, targets: readonly string[] = []): Promise<Page> {
  const text = await html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width" />
      <meta name="robots" content="noindex" />
      <title>${title}</title>
      ${STYLE_ELEMENT}
      <main>${content}</main>
    </html> `;
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "base-uri 'none'",
    `form-action ${["'self'", ...targets].join(' ')}`,
    "frame-ancestors 'none'",
  ].join('; ');
  const headers = {
    'Content-Security-Policy': policy,
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
  };
  return { text: text.toString(), headers };
}

/** A page of a few words. */
export function messagePage(title: string, text: string): Promise<Page> {
  return pageOf(
    title,
    html`<h1>${title}</h1>
      <p>${text}</p>`,
  );
}
