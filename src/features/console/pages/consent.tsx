import type { Context, Handler, Hono } from 'hono';
import type { Child } from 'hono/jsx';
import {
  admitKey,
  type BearerCheck,
  type BearerEnv,
  type FailureLog,
  HonoHead,
  originOf,
  readForm,
  readQuery,
  type RefusedPerson,
  REPLY_HEADERS,
  RequestRefused,
  type SeenOrigin,
  statusOf,
} from '../../../http/index.ts';
import { oauthErrorFor } from '../../consent/oauth/answers.ts';
import { authorizationIn, type ReturnAddress, returnAddressIn } from '../../consent/oauth/authorization-request.ts';
import { Parameters } from '../../consent/oauth/oauth-error.ts';
import type { ConsentParts } from '../../consent/oauth/parts.ts';
import { OAUTH_PATHS } from '../../consent/oauth/paths.ts';
import type { Principal } from '../../../keys/authorization/index.ts';
import type { ApprovedConsent } from '../../consent/consent.ts';
import type { ConsentChoice } from '../../consent/approval.ts';
import { hostOfClient, isSelfRegistered } from '../../consent/clients.ts';
import { redirectTo } from '../../consent/redirects.ts';
import { TooManyRequestsError } from '../../consent/pace.ts';
import { formatTime, isKeysError } from '../../../keys/basics/index.ts';
import { scopeItems } from '../../../keys/permissions/index.ts';
import { type ApiKey, expiryIn } from '../../../keys/key/index.ts';
import { createsKeys, wordsOfScope } from '../../../keys/permissions/meanings.ts';
import type { ConsentRequest } from '../../consent/consent-request.ts';
import { requireFlow } from '../../consent/consent-flow.ts';
import { type Assets, plainPageHeaders } from '../assets.ts';
import { OperationFailed } from '../operations.ts';
import { KEY_FIELD, requireOwnForm } from '../session-auth.ts';
import {
  defaultExpiry,
  expiresAtOf,
  type ExpiryChoice,
  expiryChoiceIn,
  ExpiryField,
  isWithin,
  KeyField,
  TextField,
} from '../parts/field.tsx';
import { permissionsOf, WITHHELD } from '../parts/grants.ts';
import { CreatesKeys } from '../permission-words.tsx';
import { Layout, Message } from '../parts/layout.tsx';
import { Done, Fact, Problem, Time, titleOf } from '../parts/notice.tsx';
import { SignInFailed } from '../../people/failure.ts';
import { startOf } from '../provider-way.ts';
import { answerHeaders, sendPage, type Visit } from '../visit.tsx';
import { type Means, meansOf, NO_MORE_KEYS } from './grantable.ts';
import { isFollowedLink, OneMoment } from './sign-in.tsx';
import type { Sessions } from '../../sessions/index.ts';

/** What the pages need beside what the endpoints for applications do. */
interface ConsentPageParts extends ConsentParts {
  readonly assets: Assets;
  readonly sessions: Sessions;
  readonly seenBy: (c: Context) => SeenOrigin;
  /** Finds who has signed in to the console; undefined where there is none. */
  readonly enter: ((c: Context, root: string) => Promise<Visit | 'signed out' | RefusedPerson>) | undefined;
  /** The host at which people sign in without a key; undefined where everybody shows one. */
  readonly providerHost: string | undefined;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** A page on which people decide. Addresses are relative, since another app may have this one under its own path. */
interface Door {
  readonly flow: ConsentRequest['flow'];
  readonly path: string;
  /** Where its forms go. */
  readonly action: string;
  /** The way to the console. */
  readonly root: string;
  /** The field that has what identifies a request. */
  readonly field: 'user_code' | 'page';
}

const DEVICE: Door = {
  flow: 'DEVICE',
  path: OAUTH_PATHS.device,
  action: 'device',
  root: 'console/',
  field: 'user_code',
};
const REDIRECT: Door = {
  flow: 'CODE',
  path: OAUTH_PATHS.authorize,
  action: 'authorize',
  root: '../console/',
  field: 'page',
};

/** What somebody has chosen in a form, as it is shown again. */
interface Chosen {
  readonly scopes: readonly string[];
  /** When the key ends: as somebody chooses who has signed in, and as somebody types it who has not. */
  readonly expiry?: ExpiryChoice;
  readonly expiresIn?: string;
}

/** Why somebody may not decide as they did, with the status of the page that says so. */
class DecisionRefused extends Error implements RefusedPerson {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The field that is wrong. */
  readonly field: 'expiry' | typeof KEY_FIELD | undefined;

  constructor(
    status: number,
    message: string,
    headers: RefusedPerson['headers'] = {},
    field?: DecisionRefused['field'],
  ) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.field = field;
  }
}

/** The choice of the end that the application asks for. */
const ASKED = 'asked';

/**
 * Adds the pages on which people decide what applications get: who has signed in to the console, by their session,
 * and everybody else by the key that they enter. No key is ever in a URL, and no page runs a script.
 */
export function addConsentPages(app: Hono<BearerEnv>, parts: ConsentPageParts): void {
  const { consent, catalog, clock, issuer, failures, refusals, enter } = parts;

  const show = async (
    c: Context,
    { root }: Door,
    { title, content, visit, again, status, headers, target }: Shown,
  ): Promise<Response> => {
    const around = { title, root, assets: parts.assets, isPlain: true, person: visit?.person, again };
    const document = <Layout {...around}>{content}</Layout>;
    const answered = visit ? headers : { ...answerHeaders(c), ...headers };
    return sendPage(c, document, status, answered, plainPageHeaders(target));
  };
  /** Answers somebody: what fails is shown as a page. */
  const answering =
    (door: Door, work: (c: Context) => Promise<Response>): Handler =>
    async (c) => {
      let isForeign = c.req.method === 'POST';
      try {
        requireFlow(catalog, door.flow);
        if (c.req.method === 'POST') requireOwnForm(c, parts.seenBy(c));
        else if (enter && c.req.url.includes('?') && isFollowedLink(c)) {
          const here = door.action + new URL(c.req.url).search;
          return await show(c, door, { title: 'One moment', content: <OneMoment here={here} />, again: here });
        }
        isForeign = false;
        return await work(c);
      } catch (error) {
        const { status, message, headers } = refusalOf(c, error, failures);
        const title = titleOf(status);
        const content = <Message title={title} message={message} />;
        const visit = isForeign ? undefined : await visitTo(c, door);
        return show(c, door, { title, content, visit, status, headers });
      }
    };
  /** Sends a person back to the application, which learns from whom (RFC 9207). */
  const sendBack = (c: Context, { uri, state }: ReturnAddress, answer: Readonly<Record<string, string>>): Response => {
    const location = redirectTo(uri, { ...answer, state, iss: issuer.of(c) });
    return c.body(null, 303, { ...REPLY_HEADERS, 'Referrer-Policy': 'no-referrer', Location: location });
  };
  const showCodeForm = async (
    c: Context,
    { status, message, headers }: Partial<RefusedPerson> = {},
  ): Promise<Response> => {
    const title = 'Connect an application';
    const content = (
      <div class="narrow">
        <h1>{title}</h1>
        <CodeForm action={DEVICE.action} problem={message} />
      </div>
    );
    const visit = await visitTo(c, DEVICE);
    return show(c, DEVICE, { title, content, visit, status, headers });
  };
  /** Who has signed in; otherwise, why they may not decide as that. */
  const entered = async (c: Context, { root }: Door): Promise<{ visit?: Visit; problem?: string }> => {
    const entry = (await enter?.(c, root)) ?? 'signed out';
    if (entry === 'signed out') return {};
    return 'message' in entry ? { problem: entry.message } : { visit: entry };
  };
  /** Who has signed in, as far as the navigation is concerned. */
  const visitTo = async (c: Context, door: Door): Promise<Visit | undefined> =>
    (await entered(c, door).catch(() => undefined))?.visit;
  const showDecision = async (
    c: Context,
    door: Door,
    { request, handle, visit, chosen, refused }: Decision & { chosen?: Chosen; refused?: DecisionRefused | undefined },
  ): Promise<Response> => {
    const title = `${hostOfClient(request.client) ?? request.client.name} asks for an API key`;
    const replaced = await consent.replacedBy(request);
    const means = visit && (await meansOf(visit));
    const items = scopeItems(request).map((scope) => {
      const role = /^role:(.+)$/.exec(scope)?.[1];
      return { scope, meaning: role === undefined ? undefined : catalog.meaningOf(role) };
    });
    const { search } = new URL(c.req.url);
    const signIn =
      enter && !visit && parts.providerHost !== undefined
        ? {
            host: parts.providerHost,
            href: startOf(`${door.root}sign-in`, 'next', `..${door.path}${c.req.method === 'GET' ? search : ''}`),
          }
        : undefined;
    const shown = { title, door, request, handle, replaced, items, means, chosen, refused, signIn, now: clock() };
    const target = request.redirect === null ? undefined : formTargetOf(request.redirect.uri);
    const { status, headers } = refused ?? {};
    return show(c, door, { title, content: <DecisionPage {...shown} />, visit, target, status, headers });
  };
  /** Shows a request for the first time. */
  const showAsked = async (c: Context, door: Door, asked: Decision): Promise<Response> => {
    const { visit, problem } = await entered(c, door);
    const refused = problem === undefined ? undefined : new DecisionRefused(200, problem);
    return showDecision(c, door, { ...asked, visit, refused });
  };

  /** Takes what somebody has decided. @param asked the request, and what identifies it */
  const decide = async (c: Context, door: Door, form: Parameters, asked: Decision): Promise<Response> => {
    const { request } = asked;
    const decision = form.need('decision');
    const hasKey = form.all('key').length > 0;
    const { visit, problem } = hasKey ? {} : await entered(c, door);
    if (decision === 'deny') {
      await consent.deny(request, visit?.may('API_KEY:CREATE_OWN') ? visit.principal : null);
      if (request.redirect) return sendBack(c, request.redirect, { error: 'access_denied' });
      return show(c, door, { title: 'Refused', visit, content: <RefusedPage request={request} visit={visit} /> });
    }
    if (decision !== 'approve') throw new DecisionRefused(400, 'Agree or refuse.');
    const chosen: Chosen = { scopes: form.all('scope'), expiresIn: form.get('expires_in') ?? '' };
    try {
      const principal = visit ? visit.principal : await principalIn(c, form, { check: parts.check, problem });
      const choice = { ...grantsIn(chosen), ...(visit ? await endFor(visit, form) : endIn(chosen)) };
      await visit?.requireKey(form);
      return await approved(c, door, await consent.approve(request, choice, principal), visit);
    } catch (error) {
      if (isKeysError(error) && error.code === 'REQUEST_DECIDED') throw error;
      const refused = refusalOf(c, error, failures);
      const expiry = { expiry: form.get('expiry') ?? '', date: form.get('date') ?? '' };
      return showDecision(c, door, { ...asked, visit, chosen: { ...chosen, expiry }, refused });
    }
  };
  const approved = async (c: Context, door: Door, { request, code }: ApprovedConsent, visit?: Visit) => {
    if (request.redirect) return sendBack(c, request.redirect, { code: code! });
    return show(c, door, { title: 'Agreed', visit, content: <AgreedPage request={request} visit={visit} /> });
  };
  /** Before anything is read: anybody may type anything. */
  const countCode = (c: Context) => consent.count('code', originOf(c, parts));
  const formIn = async (c: Context) => new Parameters(await readForm(c, 'This page is answered'));

  app.get(
    REDIRECT.path,
    answering(REDIRECT, async (c) => {
      const { address, ...source } = originOf(c, parts);
      consent.count('request', source);
      const given = new Parameters(readQuery(c));
      const from = await returnAddressIn(c, given, parts);
      let asked: Decision;
      try {
        asked = await consent.ask({ ...authorizationIn(given, from, parts), address });
      } catch (error) {
        const { code, description } = oauthErrorFor(c, error, failures);
        return sendBack(c, from.back, { error: code, error_description: description });
      }
      refusals.add('key asked for', { reason: from.client.id, address }, new HonoHead(c).notes);
      return showAsked(c, REDIRECT, asked);
    }),
  );
  app.post(
    REDIRECT.path,
    answering(REDIRECT, async (c) => {
      consent.count('decision', originOf(c, parts));
      const form = await formIn(c);
      const page = form.need('page');
      return decide(c, REDIRECT, form, { request: await consent.find({ page }), handle: page });
    }),
  );
  app.get(
    DEVICE.path,
    answering(DEVICE, async (c) => {
      if (!c.req.url.includes('?')) return showCodeForm(c);
      try {
        countCode(c);
        const userCode = new Parameters(readQuery(c)).get('user_code');
        if (userCode === undefined) return await showCodeForm(c);
        const request = await consent.show({ userCode });
        return await showAsked(c, DEVICE, { request, handle: userCode.trim().toUpperCase() });
      } catch (error) {
        return showCodeForm(c, refusalOf(c, error, failures));
      }
    }),
  );
  app.post(
    DEVICE.path,
    answering(DEVICE, async (c) => {
      countCode(c);
      const form = await formIn(c);
      const userCode = form.need('user_code');
      return decide(c, DEVICE, form, { request: await consent.find({ userCode }), handle: userCode });
    }),
  );
}

/** A request to be decided, by whom if they have signed in. */
interface Decision {
  readonly request: ConsentRequest;
  /** What identifies it. */
  readonly handle: string;
  readonly visit?: Visit | undefined;
}

interface Shown {
  readonly title: string;
  readonly content: Child;
  readonly visit?: Visit | undefined;
  /** What is opened in its place at once. */
  readonly again?: string;
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Where its form may lead besides the service. */
  readonly target?: string | undefined;
}

/** The key that somebody enters, accepted by the rules for all requests. @throws DecisionRefused */
async function principalIn(
  c: Context,
  form: Parameters,
  { check, problem = 'Enter your own API key.' }: { check: BearerCheck; problem?: string | undefined },
): Promise<Principal> {
  const key = form.get('key')?.trim();
  if (key === undefined || key === '') throw new DecisionRefused(400, problem);
  const admission = await admitKey(c, key, check);
  if (!('refusal' in admission)) return admission.principal;
  const { status, message, headers } = admission.refusal;
  throw new DecisionRefused(status, message, headers);
}

function grantsIn({ scopes }: Chosen): ConsentChoice {
  const roles = scopes.filter((scope) => scope.startsWith('role:')).map((scope) => scope.slice('role:'.length));
  return { roles, permissions: scopes.filter((scope) => !scope.startsWith('role:')) };
}

/** The end that somebody has typed. */
function endIn({ expiresIn = '' }: Chosen): ConsentChoice {
  return expiresIn.trim() === '' ? { expiresAt: null } : expiryIn(expiresIn.trim());
}

/** The end that somebody has chosen who has signed in. @throws DecisionRefused; OperationFailed */
async function endFor(visit: Visit, form: Parameters): Promise<ConsentChoice> {
  const { bounds } = await meansOf(visit);
  const end = expiresAtOf(expiryChoiceIn(form, bounds), bounds, ASKED);
  if ('problem' in end) throw new DecisionRefused(400, end.problem, {}, 'expiry');
  return end;
}

/** Why what somebody did was refused. @throws what is not a refusal */
function refusalOf(c: Context, error: unknown, failures: FailureLog): DecisionRefused {
  if (error instanceof DecisionRefused) return error;
  if (error instanceof RequestRefused || error instanceof SignInFailed)
    return new DecisionRefused(error.status, error.message);
  if (error instanceof OperationFailed) {
    const field = error.problems.has(KEY_FIELD) ? KEY_FIELD : undefined;
    return new DecisionRefused(error.pageStatus, error.message, {}, field);
  }
  if (error instanceof TooManyRequestsError)
    return new DecisionRefused(429, error.message, { 'Retry-After': `${error.retryAfter}` });
  if (isKeysError(error) && !error.code.startsWith('STORE_'))
    return new DecisionRefused(statusOf(error.code), error.message);
  const { status, message, headers } = oauthErrorFor(c, error, failures);
  return new DecisionRefused(status, message, headers);
}

/** The source of a Content-Security-Policy that allows a redirect. */
function formTargetOf(uri: string): string {
  const { origin, protocol } = new URL(uri);
  // That of an application's own scheme is none, and a policy cannot name an IPv6 address.
  return origin === 'null' || origin.includes('[') ? protocol : origin;
}

/** The form in which somebody types the code that an application shows. @param action where the page for it is */
export function CodeForm({ action, problem, code }: { action: string; problem?: string | undefined; code?: string }) {
  return (
    <form method="get" action={action} class="sheet">
      {problem !== undefined && <Problem>{problem}</Problem>}
      <TextField
        name={DEVICE.field}
        label="Code shown by the application"
        help="Continue only if you started it yourself. Never enter a code that somebody sent you."
        placeholder="WDJB-MJHT"
        value={code}
        problem={problem === undefined ? undefined : 'Check the code.'}
        autocapitalize="characters"
        spellcheck={false}
        maxlength={100}
        required
      />
      <button class="primary">Continue</button>
    </form>
  );
}

/** Shows what an application asks for, of which somebody may grant less. */
function DecisionPage({
  title,
  door,
  request,
  handle,
  replaced,
  items,
  means,
  chosen,
  refused,
  signIn,
  now,
}: {
  title: string;
  door: Door;
  request: ConsentRequest;
  handle: string;
  /** The key whose place the new one takes. */
  replaced: ApiKey | undefined;
  /** What it asks for, with what the roles among it are. */
  items: readonly { readonly scope: string; readonly meaning: string | undefined }[];
  /** What they may grant; undefined if they enter their key. */
  means: Means | undefined;
  /** Undefined before somebody has chosen: what is asked for, as far as it can be granted. */
  chosen: Chosen | undefined;
  refused: DecisionRefused | undefined;
  /** Where they sign in without a key. */
  signIn: { readonly host: string; readonly href: string } | undefined;
  now: number;
}) {
  const { client, address, audience, expiresAt, redirect } = request;
  const problemAt = (field: DecisionRefused['field']) => (refused?.field === field ? refused?.message : undefined);
  const mayAgree = !means || means.grantable.reason === null;
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
      </div>
      {refused && refused.field !== 'expiry' && <Problem>{refused.message}</Problem>}
      {signIn && (
        <p>
          <a class="button primary" href={signIn.href}>
            Sign in with {signIn.host}
          </a>
        </p>
      )}
      {!mayAgree && <Problem>You cannot approve this: {means.grantable.reason}</Problem>}
      {means?.grantable.creatable === 0 && <Problem>{NO_MORE_KEYS}</Problem>}
      <dl class="facts">
        <Fact name="Application">
          <ApplicationName client={client} />
          {redirect && hostOfClient(client) !== undefined && redirect.uri.startsWith('http:') && (
            <>, or any other program on your device: continue only if you just started it</>
          )}
        </Fact>
        {audience && (
          <Fact name="Key valid for">
            <code>{audience}</code> alone
          </Fact>
        )}
        {replaced && <Fact name="Replaces">its key {replaced.name}, which ends</Fact>}
        <Fact name="Requested from">{address ?? 'an unknown address'}</Fact>
        {redirect ? (
          <Fact name="Redirects to">
            <code>{redirect.uri}</code>
          </Fact>
        ) : (
          <Fact name="Code">
            <code>{handle}</code>: continue only if you just started {client.name}, and it shows this code
          </Fact>
        )}
        <Fact name="Request expires">
          <Time at={formatTime(expiresAt)} now={now} />
        </Fact>
      </dl>
      <form method="post" action={door.action} class="sheet">
        <input type="hidden" name={door.field} value={handle} />
        <fieldset>
          <legend>Permissions</legend>
          {items.map(({ scope, meaning }) => {
            const whyNot = means && whyNotGranted(scope, means);
            return (
              <label class="choice">
                <input
                  type="checkbox"
                  name="scope"
                  value={scope}
                  checked={whyNot === undefined && (chosen?.scopes.includes(scope) ?? true)}
                  disabled={whyNot !== undefined}
                />
                <span>
                  {createsKeys(scope) ? <CreatesKeys permissions={[scope]} /> : wordsOfScope(scope)}{' '}
                  <code class="faint">{scope}</code>
                  {meaning !== undefined && <span class="help"> {meaning}</span>}
                  {whyNot !== undefined && <strong> {whyNot}</strong>}
                </span>
              </label>
            );
          })}
        </fieldset>
        {means ? (
          <>
            <EndOfKey request={request} means={means} chosen={chosen} problem={problemAt('expiry')} />
            {mayAgree && <KeyField visit={means.visit} problem={problemAt(KEY_FIELD)} />}
          </>
        ) : (
          <OwnKey request={request} chosen={chosen} />
        )}
        <p class="actions">
          {mayAgree && (
            <button class="primary" name="decision" value="approve">
              Approve
            </button>
          )}
          <button class="danger" name="decision" value="deny" formnovalidate>
            Deny
          </button>
        </p>
      </form>
    </>
  );
}

/** What an application is: what is known of it comes before what it says. */
function ApplicationName({ client }: Pick<ConsentRequest, 'client'>) {
  const host = hostOfClient(client);
  if (host === undefined && !isSelfRegistered(client))
    return (
      <>
        {client.name} <code class="faint">{client.id}</code>
      </>
    );
  return host === undefined ? (
    <>calls itself {client.name}, as any other may do: continue only if you just started it</>
  ) : (
    <>
      <strong>{host}</strong>, which calls itself {client.name} <code class="faint">{client.id}</code>
    </>
  );
}

/** When the key is to end, as somebody may choose who has signed in. */
function EndOfKey({
  request: { keyExpiresIn },
  means: { bounds },
  chosen,
  problem,
}: {
  request: ConsentRequest;
  means: Means;
  chosen: Chosen | undefined;
  problem: string | undefined;
}) {
  const asked = keyExpiresIn !== null && isWithin(keyExpiresIn, bounds) ? keyExpiresIn : undefined;
  return (
    <>
      <ExpiryField
        bounds={bounds}
        chosen={chosen?.expiry ?? (asked === undefined ? defaultExpiry(bounds) : { expiry: ASKED, date: '' })}
        problem={problem}
        first={asked === undefined ? undefined : [ASKED, `After ${asked}, as requested`]}
        mayNeverEnd={keyExpiresIn === null}
      />
      <p class="help">It is a child key of yours: it can do no more than yours, and is deleted with it.</p>
    </>
  );
}

/** When the key is to end, and the key by which somebody agrees. */
function OwnKey({ request, chosen }: { request: ConsentRequest; chosen: Chosen | undefined }) {
  const { client, keyExpiresIn } = request;
  return (
    <>
      <TextField
        name="expires_in"
        label="It expires after"
        help="Such as 90m, 12h or 30d; left empty, with your own key."
        value={chosen?.expiresIn ?? keyExpiresIn ?? ''}
      />
      <TextField
        name="key"
        type="password"
        label="Your own API key"
        help={`The new key can do no more than yours, and is deleted with it. ${client.name} never sees yours.`}
        spellcheck={false}
        required
      />
    </>
  );
}

function whyNotGranted(scope: string, { grantable }: Means): string | undefined {
  const { roles, permissions, withheld } = grantable;
  const isHeld = roles.some(({ role }) => scope === `role:${role}`) || permissionsOf(permissions).includes(scope);
  if (isHeld) return undefined;
  return withheld.includes(scope.replace(/^role:/, '')) ? WITHHELD : 'Your key cannot grant it.';
}

/** What became of a request that somebody has agreed to. */
function AgreedPage({ request, visit }: { request: ConsentRequest; visit: Visit | undefined }) {
  const name = request.approval?.keyName ?? '';
  return (
    <div class="narrow">
      <h1>Agreed</h1>
      <Done>{request.client.name} gets its API key now. You can close this page.</Done>
      {visit && (
        <p>
          Its name is <strong>{name}</strong>
          {'. '}
          <a href={`${visit.root}keys?${new URLSearchParams({ search: name }).toString()}`}>Find it</a>
          {' · '}
          <a href={`${visit.root}requests`}>Requests</a>
        </p>
      )}
    </div>
  );
}

function RefusedPage({ request, visit }: { request: ConsentRequest; visit: Visit | undefined }) {
  return (
    <div class="narrow">
      <h1>Denied</h1>
      <Done>{request.client.name} gets no API key. You can close this page.</Done>
      {visit && (
        <p>
          <a href={`${visit.root}requests`}>Requests</a>
        </p>
      )}
    </div>
  );
}
