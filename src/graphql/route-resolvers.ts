import { requirePermission, type Principal } from '../keys/authorization/principal.ts';
import { KeysError } from '../keys/errors.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import { MAX_PAGE_SIZE } from '../keys/page.ts';
import type { KeysService } from '../keys/service.ts';
import { printable } from '../keys/text.ts';
import type { Resolvers } from './extension.ts';
import { badInput, connectionOf, type Resolve } from './resolve.ts';
import { MAX_METHOD_LENGTH, MAX_URL_LENGTH, ROUTES_PAGE_SIZE } from './route-type-defs.ts';
import type { ExplainedRoute, RouteCaller, ServiceParts } from './service-parts.ts';

/** Which key a request has: by its id or its name. */
interface KeyArguments {
  keyId?: string | null;
  keyName?: string | null;
}

interface ExplainArguments extends KeyArguments {
  method?: string | null;
  url: string;
  preflight?: boolean | null;
}

/** The resolvers for the routes. */
export function routeResolversOf(keys: KeysService, { routes: explainer }: ServiceParts): Resolvers {
  const routes: Resolve<{ first?: number | null; after?: string | null }> = (_, { first, after }) => {
    if (!explainer) return null;
    const limit = first ?? ROUTES_PAGE_SIZE;
    if (limit < 0 || limit > MAX_PAGE_SIZE)
      throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} routes.`);
    const leftOut = after == null ? 0 : readCursor(after);
    const { isConfigured, count } = explainer;
    const page = connectionOf(explainer.list(leftOut, limit), cursorOf, leftOut + limit < count);
    return { ...page, configured: isConfigured, total: count };
  };

  const explainRequest: Resolve<ExplainArguments> = async (_, { method, url, preflight, ...named }, { principal }) => {
    if (!explainer) return null;
    checkLength('method', method ?? '', MAX_METHOD_LENGTH);
    checkLength('url', url, MAX_URL_LENGTH);
    const key = await findKey(named, principal);
    const request = { method: method ?? 'GET', url, preflight: preflight ?? false };
    return { ...explainer.explain(request, key && (await callerOf(key))), apiKey: key };
  };

  /** @throws ForbiddenError; KeysError NOT_FOUND for a key that the caller may not read, too */
  async function findKey({ keyId, keyName }: KeyArguments, principal: Principal): Promise<ApiKey | undefined> {
    if (keyId == null && keyName == null) return undefined;
    if (keyId != null && keyName != null) throw badInput('Pass either the id or the name of the key.');
    requirePermission(principal, 'API_KEY', 'READ_OWN');
    const key = await (keyId == null ? keys.findByName(keyName!, principal) : keys.findById(keyId, principal));
    if (key) return key;
    const which = keyId == null ? `named "${printable(keyName!)}"` : `with the id "${printable(keyId)}"`;
    throw new KeysError('NOT_FOUND', `There is no API key ${which}.`);
  }

  async function callerOf(key: ApiKey): Promise<RouteCaller> {
    const [chain] = await keys.chainsOf([key]);
    return { name: key.name, status: keys.statusOf(chain!), permissions: keys.accessOf(chain!) };
  }

  return {
    Query: { routes, explainRequest },
    Route: { hiddenBy: ({ number }: ExplainedRoute) => explainer?.hiddenBy(number) },
  };
}

function checkLength(argument: string, text: string, most: number): void {
  if (text.length > most) throw badInput(`"${argument}" has ${text.length} characters; at most ${most} are allowed.`);
}

function cursorOf({ number }: ExplainedRoute): string {
  return Buffer.from(`route:${number}`).toString('base64url');
}

function readCursor(cursor: string): number {
  const [, number] = /^route:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (number === undefined) throw badInput('"after" is not a cursor of this list. Use an endCursor that it returned.');
  return Number(number);
}
