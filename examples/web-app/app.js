import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { csrf } from 'hono/csrf';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import { Consent, NoKeyError } from './consent.js';
import { KeyEndedError, Notes, PermissionMissingError } from './notes.js';
import { notesPage, permissionPage, problemPage, startPage, STYLE } from './pages.js';
import { Sessions } from './sessions.js';

const port = Number(process.env.PORT ?? 3000);
/** The address of this application for browsers. */
const url = process.env.APP_URL ?? `http://127.0.0.1:${port}`;
const issuer = process.env.SVC_API_URL ?? 'http://127.0.0.1:4000';
const consent = new Consent({ issuer, clientId: 'notes-app', redirectUri: `${url}/callback` });
const notes = new Notes(process.env.NOTES_URL ?? 'http://127.0.0.1:8080');

/** The scope of the first request. More is requested when it is needed. */
const SCOPE = 'NOTES:READ_ANY';
/** Browsers that were sent to svc-api and have not returned yet, and those with a key. */
const asking = new Sessions({ minutes: 10, most: 10_000 });
const connected = new Sessions({ minutes: 12 * 60, most: 10_000 });
// Lax, not Strict: browsers send no Strict cookie with the redirect that leads back here from another site.
const COOKIE = { httpOnly: true, sameSite: 'Lax', secure: url.startsWith('https:'), path: '/' };

const app = new Hono();
app.use(
  secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
      // Browsers apply this to the redirect after a form, too.
      formAction: ["'self'", new URL(issuer).origin],
    },
    xFrameOptions: 'DENY',
    // Not `no-referrer`, with which forms would have no Origin header to tell ours from those of other sites.
    referrerPolicy: 'same-origin',
  }),
  csrf({ origin: url }),
  bodyLimit({ maxSize: 10_000 }),
  async (c, next) => {
    c.header('Cache-Control', 'no-store');
    // A cookie set for localhost is not sent to 127.0.0.1, and this application has only one name.
    if (c.req.header('host') !== new URL(url).host) return c.html(problemPage(`Open ${url} instead.`), 421);
    return next();
  },
);

app.get('/style.css', (c) => c.body(STYLE, 200, { 'Content-Type': 'text/css' }));

app.get('/', async (c) => {
  const session = connected.get(getCookie(c, 'session'));
  if (!session) return c.html(startPage(SCOPE));
  return c.html(notesPage(await notes.list(session.key), session.scope));
});

app.post('/notes', async (c) => {
  const session = connected.get(getCookie(c, 'session'));
  if (!session) return c.html(startPage(SCOPE, 'Connect first.'), 403);
  const { text } = await c.req.parseBody();
  if (typeof text === 'string' && text.trim() !== '') await notes.add(session.key, text);
  return c.redirect('/', 303);
});

app.post('/connect', async (c) => {
  const { scope } = await c.req.parseBody();
  const { address, asked } = await consent.ask(typeof scope === 'string' ? scope : SCOPE);
  setCookie(c, 'asking', asking.add(asked), COOKIE);
  return c.redirect(address, 303);
});

app.get('/callback', async (c) => {
  const id = getCookie(c, 'asking');
  const asked = asking.get(id);
  // An answer must belong to this browser, and must not be used twice: sending a code again revokes its key.
  if (asked === undefined || asked.state !== c.req.query('state'))
    return c.html(problemPage('This answer was used already, or is not for this browser.'), 400);
  asking.delete(id);
  deleteCookie(c, 'asking', COOKIE);
  const given = await consent.keyFrom(new URL(c.req.url), asked);
  const previous = forget(c);
  setCookie(c, 'session', connected.add(given), COOKIE);
  if (previous) await consent.end(previous.key).catch(report);
  // Removes the code from the address bar.
  return c.redirect('/', 303);
});

app.post('/disconnect', async (c) => {
  const session = forget(c);
  deleteCookie(c, 'session', COOKIE);
  try {
    if (session) await consent.end(session.key);
  } catch (error) {
    report(error);
    return c.html(problemPage('The key is forgotten here, but svc-api did not end it. Delete it there.'), 502);
  }
  return c.redirect('/', 303);
});

app.onError((error, c) => {
  if (error instanceof HTTPException) return error.getResponse();
  if (error instanceof NoKeyError) return c.html(problemPage(error.message), 403);
  if (error instanceof PermissionMissingError) {
    const { scope = '' } = connected.get(getCookie(c, 'session')) ?? {};
    return c.html(permissionPage(error.scope, `${scope} ${error.scope}`), 403);
  }
  if (error instanceof KeyEndedError) {
    forget(c);
    return c.html(startPage(SCOPE, 'The key has ended, or was deleted. Connect again.'), 403);
  }
  report(error);
  return c.html(problemPage('A service that this application needs does not answer as it should.'), 502);
});

/** Forgets the key of a browser. @returns the data that was kept */
function forget(c) {
  const id = getCookie(c, 'session');
  const session = connected.get(id);
  connected.delete(id);
  return session;
}

/** Logs only the message, since other properties of an error can hold secrets. */
function report(error) {
  console.error(`Error: ${error.message}`);
}

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, () => console.log(`Listening on ${url}`));
server.on('error', (error) => {
  const isTaken = error.code === 'EADDRINUSE';
  console.error(isTaken ? `Port ${port} is taken. Choose another one: PORT=3001 npm start` : `Error: ${error.message}`);
  process.exitCode = 1;
});
