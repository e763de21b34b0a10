import { html } from 'hono/html';
import { formatTime } from '../keys/time.ts';
import { type Html, type Page, pageOf } from './document.ts';

/** Something that an application asks for. */
export interface AskedItem {
  /** As it stands in a scope. */
  readonly scope: string;
  /** What it means. */
  readonly meaning: string;
  /** Whether it is to be granted, as far as the person has said. */
  readonly isChosen: boolean;
}

/** What a person is shown before they decide. */
export interface ConsentPage {
  readonly client: { readonly id: string; readonly name: string };
  readonly items: readonly AskedItem[];
  /** Null if it is not known. */
  readonly address: string | null;
  /** In milliseconds since 1970. */
  readonly expiresAt: number;
  /** After which time the key is to end, such as `30d`; empty for none. */
  readonly keyExpiresIn: string;
  /** What identifies the request, as a field of the form. */
  readonly handle: { readonly field: string; readonly value: string };
  /** Where the person is sent back to; null where the application shows a code. */
  readonly redirectUri: string | null;
  /** Where the form goes. */
  readonly action: string;
  /** Why an earlier decision was not taken. */
  readonly problem?: string | undefined;
}

/** The page on which a person agrees to a request, narrows or refuses it. */
export function consentPage(shown: ConsentPage): Promise<Page> {
  const { client, items, keyExpiresIn, handle, redirectUri, action, problem } = shown;
  const content = html`<h1>${client.name} asks for an API key</h1>
    ${problem === undefined ? '' : html`<p class="problem" role="alert">${problem}</p>`} ${details(shown)}
    <form method="post" action="${action}">
      <input type="hidden" name="${handle.field}" value="${handle.value}" />
      <fieldset>
        <legend>What the key may do</legend>
        ${items.map(checkbox)}
      </fieldset>
      <label for="expires_in"
        >It expires after <small>such as 90m, 12h or 30d; left empty, with your own key</small></label
      >
      <input id="expires_in" name="expires_in" value="${keyExpiresIn}" autocomplete="off" />
      <label for="key"
        >Your own API key
        <small
          >The new key can do no more than yours, and ends with it. ${client.name} does not get to see yours.</small
        ></label
      >
      <input id="key" name="key" type="password" autocomplete="off" spellcheck="false" required />
      <p>
        <button name="decision" value="approve">Agree</button>
        <button name="decision" value="deny" formnovalidate>Refuse</button>
      </p>
    </form>`;
  return pageOf(`${client.name} asks for an API key`, content, redirectUri === null ? [] : [formTargetOf(redirectUri)]);
}

/** The page on which a person types the code that an application shows. */
export function codePage(action: string, problem?: string): Promise<Page> {
  const title = 'Connect an application';
  const content = html`<h1>${title}</h1>
    ${problem === undefined ? '' : html`<p class="problem" role="alert">${problem}</p>`}
    <form method="get" action="${action}">
      <label for="user_code">The code that the application shows</label>
      <input
        id="user_code"
        name="user_code"
        placeholder="WDJB-MJHT"
        autocomplete="off"
        autocapitalize="characters"
        required
      />
      <p><button>Go on</button></p>
    </form>`;
  return pageOf(title, content);
}

function details({ client, address, expiresAt, handle, redirectUri }: ConsentPage): Html {
  const way =
    redirectUri === null
      ? html`<dt>Code</dt>
          <dd>
            <code>${handle.value}</code>: go on only if you have just started ${client.name}, and it shows this code
          </dd>`
      : html`<dt>You are sent back to</dt>
          <dd><code>${redirectUri}</code></dd>`;
  return html`<dl>
    <dt>Application</dt>
    <dd>${client.name} (<code>${client.id}</code>)</dd>
    <dt>It asks from</dt>
    <dd>${address ?? 'an unknown address'}</dd>
    ${way}
    <dt>Decide until</dt>
    <dd>${formatTime(expiresAt).replace(/\.\d+Z$/, 'Z')}</dd>
  </dl>`;
}

function checkbox({ scope, meaning, isChosen }: AskedItem): Html {
  return html`<label
    ><input type="checkbox" name="scope" value="${scope}" ${isChosen ? ' checked' : ''} />
    <code>${scope}</code>
    <small>${meaning}</small></label
  > `;
}

/** The source of a Content-Security-Policy that allows a redirect. */
function formTargetOf(uri: string): string {
  const { origin, protocol } = new URL(uri);
  // That of an application's own scheme is none, and a policy cannot name an IPv6 address.
  return origin === 'null' || origin.includes('[') ? protocol : origin;
}
