import { hash } from 'node:crypto';
import type { Hono } from 'hono';
import Negotiator from 'negotiator';
import type { BearerEnv } from './bearer-auth.ts';
import { HEALTH_PATHS } from './health.ts';
import { jsonReply, type Reply, respond } from './replies.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
code { overflow-wrap: anywhere; }
`;

/** @param console what the page says of the console */
const pageWith = (console: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>svc-api</title>
<style>${STYLE}</style>
<main>
<h1>svc-api</h1>
<p>This is a GraphQL service for programs. It answers those that send a valid API key.</p>
<dl>
<dt><code>POST /graphql</code></dt>
<dd>GraphQL, with <code>Authorization: Bearer &lt;API key&gt;</code> and <code>Content-Type: application/json</code>;
queries also by <code>GET /graphql?query=…</code></dd>
<dt>${HEALTH_PATHS.map((path) => `<code>GET ${path}</code>`).join(', ')}</dt>
<dd>whether it is alive, and whether its key store answers; without a key</dd>
</dl>
${console}
<p>Keys come from whoever runs this service, by <code>svc-api apikey create</code>. The documentation is in the folder
<code>docs</code> of the package <code>svc-api</code>; <code>docs/http.md</code> is about this interface.</p>
</main>
</html>
`;

/** Nothing is loaded, nothing runs, nothing is sent, and no other page shows it. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = {
  status: 200,
  type: 'text/html; charset=utf-8',
  headers: { 'Content-Security-Policy': POLICY, 'Referrer-Policy': 'no-referrer', Vary: 'Accept' },
};
const JSON_TYPE = 'application/json';

const CONSOLE = '<p>People sign in at the <a href="console/">console</a>.</p>';

/** Adds a page to an app that says what it is: to a browser as HTML, to anybody else as JSON. */
export function addHomePage(app: Hono<BearerEnv>, { hasConsole }: { hasConsole: boolean }): void {
  const page: Reply = { ...HTML, text: pageWith(hasConsole ? CONSOLE : '') };
  const json = jsonReply(
    {
      service: 'svc-api',
      graphql: '/graphql',
      authorization: 'Bearer <API key>',
      ...(hasConsole && { console: '/console' }),
      health: HEALTH_PATHS,
      documentation: 'docs/http.md in the package svc-api',
    },
    { Vary: 'Accept' },
  );
  app.get('/', (c) => {
    const accept = c.req.header('accept') ?? '*/*';
    const best = new Negotiator({ headers: { accept } }).mediaType([JSON_TYPE, 'text/html']);
    return respond(c, best === 'text/html' ? page : json);
  });
}
