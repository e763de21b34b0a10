import type { Context, Handler } from 'hono';
import type { ApprovedConsent } from '../../keys/consent/consent.ts';
import { type ConsentFlow, type ConsentRequest, requireFlow } from '../../keys/requests/consent-request.ts';
import { isKeysError } from '../../keys/errors.ts';
import { redirectTo } from '../../keys/requests/redirects.ts';
import { scopeItems } from '../../keys/requests/scope.ts';
import { codePage, consentPage } from '../../pages/consent-page.ts';
import { messagePage, type Page } from '../../pages/document.ts';
import { meaningOfScope } from '../../keys/permissions/meanings.ts';
import type { BearerCheck } from '../bearer-check.ts';
import type { FailureLog } from '../refusal-log.ts';
import { readForm, readQuery } from '../form.ts';
import { HonoHead } from '../received.ts';
import { REPLY_HEADERS, respond } from '../replies.ts';
import { oauthErrorFor } from './answers.ts';
import { authorizationIn, type ReturnAddress, returnAddressIn } from './authorization-request.ts';
import { choiceIn, DecisionRefused, principalIn, refusalOf, requireOwnPage } from './decision-form.ts';
import { type ConsentParts, originOf } from './endpoints.ts';
import { Parameters } from './parameters.ts';

/** What the pages need beside what the endpoints do. */
export interface DecisionParts extends ConsentParts {
  /** Accepts the keys of those who decide. */
  readonly check: BearerCheck;
  readonly failures: FailureLog;
}

/** The pages on which people decide. No key is ever in a URL, and no page runs a script. */
export class Decisions {
  readonly #parts: DecisionParts;

  constructor(parts: DecisionParts) {
    this.#parts = parts;
  }

  /** Shows what an application asks for that has sent a person here (RFC 6749, section 4.1.1). */
  readonly showRedirect: Handler = (c) =>
    this.#answer(c, 'CODE', async () => {
      const parts = this.#parts;
      const { address, ...source } = originOf(c, parts);
      parts.consent.countRequest(source);
      const given = new Parameters(readQuery(c));
      const from = returnAddressIn(given, parts);
      try {
        const wanted = { ...authorizationIn(given, from, parts), address };
        const { request, handle } = await parts.consent.ask(wanted);
        parts.refusals.add('key asked for', { reason: from.client.id, address }, new HonoHead(c).notes);
        return send(c, 200, await this.#pageOf(request, handle));
      } catch (error) {
        const { code, description } = oauthErrorFor(c, error, parts.failures);
        return this.#sendBack(c, from.back, { error: code, error_description: description });
      }
    });

  /** Takes what that person has decided, and sends them back. */
  readonly decideRedirect: Handler = (c) =>
    this.#answer(c, 'CODE', async () => {
      this.#requireOwnPage(c);
      this.#parts.consent.countDecision(originOf(c, this.#parts));
      const form = await readDecision(c);
      const page = form.need('page');
      const request = await this.#parts.consent.find({ page });
      return this.#decide(c, form, { request, handle: page });
    });

  /** Shows what an application asks for that shows a code, or asks for that code (RFC 8628, section 3.3). */
  readonly showDevice: Handler = (c) =>
    this.#answer(c, 'DEVICE', async () => {
      if (!c.req.url.includes('?')) return send(c, 200, await codePage('device'));
      this.#countCode(c);
      const userCode = new Parameters(readQuery(c)).get('user_code');
      if (userCode === undefined) return send(c, 200, await codePage('device'));
      try {
        const request = await this.#parts.consent.show({ userCode });
        return send(c, 200, await this.#pageOf(request, userCode.trim().toUpperCase()));
      } catch (error) {
        const { status, message, headers } = refusalOf(error);
        return send(c, status, await codePage('device', message), headers);
      }
    });

  /** Takes what that person has decided. */
  readonly decideDevice: Handler = (c) =>
    this.#answer(c, 'DEVICE', async () => {
      this.#requireOwnPage(c);
      this.#countCode(c);
      const form = await readDecision(c);
      const userCode = form.need('user_code');
      const request = await this.#parts.consent.find({ userCode });
      return this.#decide(c, form, { request, handle: userCode });
    });

  #requireOwnPage(c: Context): void {
    requireOwnPage(c, this.#parts.issuer.of(c));
  }

  /** Before anything is read: anybody may type anything. */
  #countCode(c: Context): void {
    this.#parts.consent.countCode(originOf(c, this.#parts));
  }

  async #decide(
    c: Context,
    form: Parameters,
    { request, handle }: { request: ConsentRequest; handle: string },
  ): Promise<Response> {
    const { consent, check } = this.#parts;
    const decision = form.need('decision');
    if (decision === 'deny') {
      await consent.deny(request, null);
      return this.#denied(c, request);
    }
    if (decision !== 'approve') throw new DecisionRefused(400, 'Agree or refuse.');
    try {
      const principal = await principalIn(c, form, check);
      return await this.#approved(c, await consent.approve(request, choiceIn(form), principal));
    } catch (error) {
      if (isKeysError(error) && error.code === 'REQUEST_DECIDED') throw error;
      const { status, message, headers } = refusalOf(error);
      const shown = { chosen: form.all('scope'), keyExpiresIn: form.get('expires_in') ?? '', problem: message };
      return send(c, status, await this.#pageOf(request, handle, shown), headers);
    }
  }

  async #approved(c: Context, { request, code }: ApprovedConsent): Promise<Response> {
    const { redirect, client } = request;
    if (redirect) return this.#sendBack(c, redirect, { code: code! });
    return send(c, 200, await messagePage('Agreed', `${client.name} gets its API key now. You can close this page.`));
  }

  async #denied(c: Context, { redirect, client }: ConsentRequest): Promise<Response> {
    if (redirect) return this.#sendBack(c, redirect, { error: 'access_denied' });
    return send(c, 200, await messagePage('Refused', `${client.name} gets no API key. You can close this page.`));
  }

  /** Sends a person back to the application, which learns from whom (RFC 9207). */
  #sendBack(c: Context, { uri, state }: ReturnAddress, answer: Readonly<Record<string, string>>): Response {
    const location = redirectTo(uri, { ...answer, state, iss: this.#parts.issuer.of(c) });
    return c.body(null, 303, { ...REPLY_HEADERS, 'Referrer-Policy': 'no-referrer', Location: location });
  }

  #pageOf(
    request: ConsentRequest,
    handle: string,
    {
      chosen,
      keyExpiresIn = request.keyExpiresIn ?? '',
      problem,
    }: { chosen?: readonly string[]; keyExpiresIn?: string; problem?: string } = {},
  ): Promise<Page> {
    const { client, address, expiresAt, redirect } = request;
    const { catalog } = this.#parts;
    return consentPage({
      client,
      address,
      expiresAt,
      keyExpiresIn,
      problem,
      items: scopeItems(request).map((scope) => ({
        scope,
        meaning: meaningOfScope(scope, catalog),
        isChosen: chosen?.includes(scope) ?? true,
      })),
      handle: { field: redirect ? 'page' : 'user_code', value: handle },
      redirectUri: redirect?.uri ?? null,
      // Relative, since another app may have this one under a path of its own.
      action: redirect ? 'authorize' : 'device',
    });
  }

  /** Answers a person: what fails is shown as a page. */
  async #answer(c: Context, flow: ConsentFlow, work: () => Promise<Response>): Promise<Response> {
    try {
      requireFlow(this.#parts.catalog, flow);
      return await work();
    } catch (error) {
      const { status, message, headers } = this.#refusalOf(c, error);
      return send(c, status, await messagePage('This cannot be done', message), headers);
    }
  }

  #refusalOf(c: Context, error: unknown): DecisionRefused {
    try {
      return refusalOf(error);
    } catch {
      const { status, message, headers } = oauthErrorFor(c, error, this.#parts.failures);
      return new DecisionRefused(status, message, headers);
    }
  }
}

async function readDecision(c: Context): Promise<Parameters> {
  return new Parameters(await readForm(c, 'This page is answered'));
}

function send(
  c: Context,
  status: number,
  { text, headers }: Page,
  more: Readonly<Record<string, string>> = {},
): Response {
  return respond(c, { status, type: 'text/html; charset=utf-8', text, headers: { ...headers, ...more } });
}
