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
  type PageRefusal,
  REPLY_HEADERS,
  RequestRefused,
  statusOf,
} from '../../../http/index.ts';
import { oauthErrorFor } from '../../consent/oauth/answers.ts';
import { authorizationIn, type ReturnAddress, returnAddressIn } from '../../consent/oauth/authorization-request.ts';
import { Parameters } from '../../consent/oauth/oauth-error.ts';
import type { ConsentParts } from '../../consent/oauth/parts.ts';
import { OAUTH_PATHS } from '../../consent/oauth/paths.ts';
import type { Principal } from '../../../keys/authorization/index.ts';
import type { ConsentChoice } from '../../consent/approval.ts';
import { hostOfClient, isSelfRegistered } from '../../consent/clients.ts';
import { redirectTo } from '../../consent/redirects.ts';
import { TooManyRequestsError } from '../../consent/pace.ts';
import { formatTime, isKeysError } from '../../../keys/basics/index.ts';
import { scopeItems } from '../../../keys/permissions/index.ts';
import { type ApiKey, expiryIn } from '../../../keys/key/index.ts';
import type { ConsentRequest } from '../../consent/consent-request.ts';
import { requireFlow } from '../../consent/consent-flow.ts';
import { type Assets, plainPageHeaders } from '../assets.ts';
import { withQuery } from '../links.ts';
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
import { createsKeys, wordsOfScope } from '../permission-meanings.ts';
import { CreatesKeys } from '../permission-words.tsx';
import { Message, Panel } from '../parts/layout.tsx';
import { Done, Fact, LinkButton, Problem, Time, titleOf } from '../parts/notice.tsx';
import { SignInFailed } from '../../people/failure.ts';
import { startOf } from '../provider-way.ts';
import { sendPage, type Visit } from '../visit.tsx';
import { type Means, meansOf, NO_MORE_KEYS } from './grantable.ts';
import { isFollowedLink, OneMoment } from './sign-in.tsx';
import type { SeenOrigin, Sessions } from '../../sessions/index.ts';

/** Parts that the pages need in addition to those of the endpoints for applications. */
interface ConsentPageParts extends ConsentParts {
  readonly assets: Assets;
  readonly sessions: Sessions;
  readonly seenBy: (c: Context) => SeenOrigin;
  /** Finds the person signed in to the console; undefined if there is no console. */
  readonly enter: ((c: Context, root: string) => Promise<Visit | 'signed out' | PageRefusal>) | undefined;
  /** Host of the sign-in provider; undefined if everyone signs in with a key. */
  readonly providerHost: string | undefined;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** An approval page. Its addresses are relative, so that another app can mount this one under a path. */
interface Door {
  readonly flow: ConsentRequest['flow'];
  readonly path: string;
  /** Address of its forms. */
  readonly action: string;
  /** Path to the console. */
  readonly root: string;
  /** Field that identifies the request. */
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

/** Choices in the form, to show it again. */
interface Chosen {
  readonly scopes: readonly string[];
  /** Expiry of the key: from the list of a signed-in person, or as typed by someone who is not signed in. */
  readonly expiry?: ExpiryChoice;
  readonly expiresIn?: string;
}

/** A decision that was refused, with the status of the page that says why. */
class DecisionRefused extends Error implements PageRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The field with the problem. */
  readonly field: 'expiry' | typeof KEY_FIELD | undefined;

  constructor(status: number, message: string, headers: PageRefusal['headers'] = {}, field?: DecisionRefused['field']) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.field = field;
  }
}

/** Choice of the expiry that the application requested. */
const ASKED = 'asked';

/**
 * Adds the pages for approving requests of applications. Signed-in people use their session; others enter their key. No
 * key is ever in a URL, and no page runs a script.
 */
export function addConsentPages(app: Hono<BearerEnv>, parts: ConsentPageParts): void {
  const { consent, catalog, clock, issuer, failures, refusals, enter } = parts;

  const show = (c: Context, { root }: Door, { content, visit, target, ...shown }: Shown): Promise<Response> => {
    const pageHeaders = plainPageHeaders(target);
    return sendPage(c, parts, { ...shown, root, isPlain: true, person: visit?.person, pageHeaders }, content);
  };
  /** Answers a request, and shows errors as a page. */
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
  /** Sends the browser back to the application, naming this server as the issuer (RFC 9207). */
  const sendBack = (c: Context, { uri, state }: ReturnAddress, answer: Readonly<Record<string, string>>): Response => {
    const location = redirectTo(uri, { ...answer, state, iss: issuer.of(c) });
    return c.body(null, 303, { ...REPLY_HEADERS, 'Referrer-Policy': 'no-referrer', Location: location });
  };
  const showCodeForm = async (
    c: Context,
    { status, message, headers }: Partial<PageRefusal> = {},
  ): Promise<Response> => {
    const title = 'Connect an application';
    const content = (
      <Panel width="narrow" title={title}>
        <CodeForm action={DEVICE.action} problem={message} />
      </Panel>
    );
    const visit = await visitTo(c, DEVICE);
    return show(c, DEVICE, { title, content, visit, status, headers });
  };
  /** Finds the signed-in person, or the reason they cannot approve as such. */
  const entered = async (c: Context, { root }: Door): Promise<{ visit?: Visit; problem?: string }> => {
    const entry = (await enter?.(c, root)) ?? 'signed out';
    if (entry === 'signed out') return {};
    return 'message' in entry ? { problem: entry.message } : { visit: entry };
  };
  /** Finds the signed-in person for the navigation only. */
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

  /** Carries out a decision. @param asked the request, and its identifier */
  const decide = async (c: Context, door: Door, form: Parameters, asked: Decision): Promise<Response> => {
    const { request } = asked;
    const decision = form.need('decision');
    const hasKey = form.all('key').length > 0;
    const { visit, problem } = hasKey ? {} : await entered(c, door);
    if (decision === 'deny') {
      await consent.deny(request, visit?.may('API_KEY:CREATE_OWN') ? visit.principal : null);
      if (request.redirect) return sendBack(c, request.redirect, { error: 'access_denied' });
      return show(c, door, { title: 'Denied', visit, content: <RefusedPage request={request} visit={visit} /> });
    }
    if (decision !== 'approve') throw new DecisionRefused(400, 'Choose Approve or Deny.');
    const chosen: Chosen = { scopes: form.all('scope'), expiresIn: form.get('expires_in') ?? '' };
    try {
      const principal = visit ? visit.principal : await principalIn(c, form, { check: parts.check, problem });
      const choice = { ...grantsIn(chosen), ...(visit ? await endFor(visit, form) : endIn(chosen)) };
      await visit?.requireKey(form);
      const { request: approved, code } = await consent.approve(request, choice, principal);
      if (approved.redirect) return sendBack(c, approved.redirect, { code: code! });
      const content = <AgreedPage request={approved} visit={visit} />;
      return await show(c, door, { title: 'Approved', visit, content });
    } catch (error) {
      if (isKeysError(error) && error.code === 'REQUEST_DECIDED') throw error;
      const refused = refusalOf(c, error, failures);
      const expiry = { expiry: form.get('expiry') ?? '', date: form.get('date') ?? '' };
      return showDecision(c, door, { ...asked, visit, chosen: { ...chosen, expiry }, refused });
    }
  };
  /** Counts attempts before anything is read, so that codes cannot be guessed. */
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

/** A request to decide, with the person if signed in. */
interface Decision {
  readonly request: ConsentRequest;
  /** Identifies the request. */
  readonly handle: string;
  readonly visit?: Visit | undefined;
}

interface Shown {
  readonly title: string;
  readonly content: Child;
  readonly visit?: Visit | undefined;
  /** Address that the page opens by itself. */
  readonly again?: string;
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Another site that its form can lead to. */
  readonly target?: string | undefined;
}

/** Checks the key that someone enters, by the same rules as for any request. @throws DecisionRefused */
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

/** The expiry as typed. */
function endIn({ expiresIn = '' }: Chosen): ConsentChoice {
  return expiresIn.trim() === '' ? { expiresAt: null } : expiryIn(expiresIn.trim());
}

/** The expiry as chosen by a signed-in person. @throws DecisionRefused; OperationFailed */
async function endFor(visit: Visit, form: Parameters): Promise<ConsentChoice> {
  const { bounds } = await meansOf(visit);
  const end = expiresAtOf(expiryChoiceIn(form, bounds), bounds, ASKED);
  if ('problem' in end) throw new DecisionRefused(400, end.problem, {}, 'expiry');
  return end;
}

/** Turns an error into a refusal to show. @throws any other error */
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
  // An application's own scheme has no origin, and a policy cannot name an IPv6 address.
  return origin === 'null' || origin.includes('[') ? protocol : origin;
}

/** The form for the code that an application shows. @param action address of its page */
export function CodeForm({ action, problem, code }: { action: string; problem?: string | undefined; code?: string }) {
  return (
    <form method="get" action={action} class="sheet">
      {problem !== undefined && <Problem>{problem}</Problem>}
      <TextField
        name={DEVICE.field}
        label="Code shown by the application"
        help="Continue only if you started it yourself. Never enter a code that someone sent you."
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

/** Shows the request of an application. People can approve less than it asks for. */
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
  /** The key that the new one replaces. */
  replaced: ApiKey | undefined;
  /** Requested permissions and roles, with the meaning of roles. */
  items: readonly { readonly scope: string; readonly meaning: string | undefined }[];
  /** Grants that the person can give; undefined if they enter their key. */
  means: Means | undefined;
  /** Undefined at first: everything requested that can be granted is then selected. */
  chosen: Chosen | undefined;
  refused: DecisionRefused | undefined;
  /** Sign-in at the provider. */
  signIn: { readonly host: string; readonly href: string } | undefined;
  now: number;
}) {
  const { client, address, audience, expiresAt, redirect } = request;
  const problemAt = (field: DecisionRefused['field']) => (refused?.field === field ? refused?.message : undefined);
  const mayAgree = !means || means.grantable.reason === null;
  return (
    <>
      <h1>{title}</h1>
      {refused && refused.field !== 'expiry' && <Problem>{refused.message}</Problem>}
      {signIn && (
        <p>
          <LinkButton kind="primary" to={signIn.href}>
            Sign in with {signIn.host}
          </LinkButton>
        </p>
      )}
      {!mayAgree && <Problem>You cannot approve this: {means.grantable.reason}</Problem>}
      {means?.grantable.creatable === 0 && <Problem>{NO_MORE_KEYS}</Problem>}
      <dl class="facts">
        <Fact name="Application">
          <ApplicationName client={client} />
          {redirect && hostOfClient(client) !== undefined && redirect.uri.startsWith('http:') && (
            <>. Any other program on your device can pretend to be it: continue only if you just started it.</>
          )}
        </Fact>
        {audience && (
          <Fact name="Key valid for">
            <code>{audience}</code> only
          </Fact>
        )}
        {replaced && <Fact name="Replaces">its key {replaced.name}, which will stop working</Fact>}
        <Fact name="Requested from">{address ?? 'an unknown address'}</Fact>
        {redirect ? (
          <Fact name="Redirects to">
            <code>{redirect.uri}</code>
          </Fact>
        ) : (
          <Fact name="Code">
            <code>{handle}</code>. Continue only if you just started {client.name} and it shows this code.
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

/** Names an application. Facts that were checked come before its own claims. */
function ApplicationName({ client }: Pick<ConsentRequest, 'client'>) {
  const host = hostOfClient(client);
  if (host === undefined && !isSelfRegistered(client))
    return (
      <>
        {client.name} <code class="faint">{client.id}</code>
      </>
    );
  return host === undefined ? (
    <>Calls itself {client.name}, but this was not checked. Continue only if you just started it.</>
  ) : (
    <>
      <strong>{host}</strong>, which calls itself {client.name} <code class="faint">{client.id}</code>
    </>
  );
}

/** The expiry, for a signed-in person. */
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
      <p class="help">The new key is a child of your key: it can do no more than yours, and is deleted with it.</p>
    </>
  );
}

/** The expiry, and the key of someone who is not signed in. */
function OwnKey({ request, chosen }: { request: ConsentRequest; chosen: Chosen | undefined }) {
  const { client, keyExpiresIn } = request;
  return (
    <>
      <TextField
        name="expires_in"
        label="Expires after"
        help="For example 12h or 30d. Empty: when your key expires."
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
  return withheld.includes(scope.replace(/^role:/, '')) ? WITHHELD : 'Your key cannot grant this.';
}

/** Confirms an approved request. */
function AgreedPage({ request, visit }: { request: ConsentRequest; visit: Visit | undefined }) {
  const name = request.approval?.keyName ?? '';
  return (
    <Panel width="narrow" title="Approved">
      <Done>{request.client.name} gets its key now. You can close this page.</Done>
      {visit && (
        <p>
          Its name is <strong>{name}</strong>
          {'. '}
          <a href={withQuery(`${visit.root}keys`, { search: name })}>Find it</a>
          {' · '}
          <a href={`${visit.root}requests`}>Approvals</a>
        </p>
      )}
    </Panel>
  );
}

function RefusedPage({ request, visit }: { request: ConsentRequest; visit: Visit | undefined }) {
  return (
    <Panel width="narrow" title="Denied">
      <Done>{request.client.name} gets no key. You can close this page.</Done>
      {visit && (
        <p>
          <a href={`${visit.root}requests`}>Approvals</a>
        </p>
      )}
    </Panel>
  );
}
