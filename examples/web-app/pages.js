import { html } from 'hono/html';

/**
 * A page with escaped values. It has no scripts, and its style is a file, so that the content security policy can be
 * strict.
 */
function page(title, content) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title}</title>
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html>`;
}

/** The page of a browser that has no key. */
export function startPage(scope, problem) {
  return page(
    'Notes',
    html`${problem ? html`<p role="alert">${problem}</p>` : ''}
      <p>
        This application needs a key. You agree to that on a page of svc-api, with a key of yours, which this one never
        sees.
      </p>
      ${connectForm(scope, 'Connect')}`,
  );
}

/** The page of the service's answer. */
export function notesPage({ caller, notes }, scope) {
  return page(
    'Notes',
    html`<section aria-labelledby="connected">
        <h2 id="connected">Connected</h2>
        <dl>
          <dt>The service knows this key as</dt>
          <dd>${caller.name} (<code>${caller.id}</code>)</dd>
          <dt>It was given</dt>
          <dd><code>${scope}</code></dd>
        </dl>
        <form method="post" action="/disconnect"><button>Disconnect</button></form>
      </section>
      <section aria-labelledby="notes">
        <h2 id="notes">All notes</h2>
        ${notes.length === 0 ? html`<p>There are none yet.</p>` : ''}
        <ul>
          ${notes.map(({ text, by }) => html`<li>${text} <small>by ${by}</small></li>`)}
        </ul>
        <form method="post" action="/notes">
          <label for="text">New note</label>
          <input id="text" name="text" maxlength="200" autocomplete="off" required />
          <button>Add</button>
        </form>
      </section>`,
  );
}

/** The page for a permission that the key lacks. */
export function permissionPage(missing, scope) {
  return page(
    'A permission is missing',
    html`<p role="alert">The key lacks <code>${missing}</code>.</p>
      <p>If you agree, svc-api gives this application another key, which has it.</p>
      ${connectForm(scope, 'Ask for it')}
      <form method="post" action="/disconnect"><button>Disconnect</button></form>
      <p><a href="/">Back to the notes</a></p>`,
  );
}

/** The page for an error. */
export function problemPage(problem) {
  return page(
    'That did not work',
    html`<p role="alert">${problem}</p>
      <p><a href="/">Back to the start</a></p>`,
  );
}

const connectForm = (scope, label) =>
  html`<form method="post" action="/connect">
    <input type="hidden" name="scope" value="${scope}" />
    <button>${label}</button>
  </form>`;

export const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
code, dd, li { overflow-wrap: anywhere; }
input, button { font: inherit; padding: .4rem .6rem; }
[role=alert] { border-left: .3rem solid; padding-left: .7rem; font-weight: 600; }
`;
