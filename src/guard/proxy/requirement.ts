import { assertValid, KeysError } from '../../keys/errors.ts';
import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { parsePermissions } from '../../keys/permissions/grants.ts';
import { requirementOf } from '../../routes/decide.ts';
import type { RequestParts } from '../../routes/request.ts';
import { type Allow, createRouter, type Match, type Route, type Router } from '../../routes/router.ts';
import { isRewriting } from '../rewriting-headers.ts';

/** A request as it is decided about. */
export interface JudgedRequest {
  readonly parts: RequestParts;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
}

/** Who may make a request; or why nobody may. */
export type Requirement = { readonly allow: Allow; readonly match?: Match } | { readonly refusal: string };

/** Says who may make a request. */
export type Requirements = (request: JudgedRequest) => Requirement;

/** What the user asks for where routes are not to decide. */
export interface AskedRequirement {
  /** All of these permissions, as typed. */
  readonly permissions: readonly string[] | undefined;
  /** Any valid key. */
  readonly anyKey: boolean;
}

/**
 * Who may make requests: what is asked for, or what routes say.
 * @throws ValidationError PERMISSION_INVALID; KeysError USAGE if neither is there
 */
export function readRequirements(
  { permissions, anyKey }: AskedRequirement,
  { routes, catalog }: { routes: readonly Route[]; catalog: Catalog },
): Requirements {
  if (anyKey) return always({ kind: 'key' });
  if (permissions) {
    const { values, issues } = parsePermissions(permissions, catalog);
    const undeclared = permissions
      .map((text) => text.split(':')[0]!.trim().toUpperCase())
      .filter((name) => isUndeclared(name, catalog));
    const declare = `Declare resources of your own in svc-api.yaml: resources: [${undeclared.join(', ')}]`;
    assertValid(undeclared.length > 0 ? [...issues, { code: 'PERMISSION_INVALID', message: declare }] : issues);
    return always({ kind: 'all', permissions: values as [Permission, ...Permission[]] });
  }
  if (routes.length > 0) return byRoutes(createRouter(routes));
  const ways = 'Pass --permission RESOURCE:ACTION or --any-key, or declare routes in svc-api.yaml.';
  throw new KeysError('USAGE', `Nothing says who may pass. ${ways}`);
}

/** Whether a text could be the name of a resource that is not declared. */
function isUndeclared(name: string, { resources }: Catalog): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(name) && !resources.includes(name);
}

/** One requirement for all requests. */
export function always(allow: Allow): Requirements {
  const requirement = { allow };
  return () => requirement;
}

/** What routes require. */
export function byRoutes(router: Router): Requirements {
  return ({ parts, rawHeaders }) => {
    const rewriting = rawHeaders.find((name, index) => index % 2 === 0 && isRewriting(name));
    if (rewriting !== undefined) return { refusal: `${rewriting} asks for another request` };
    return requirementOf(router, parts);
  };
}
