import { createHash } from 'node:crypto';
import { type Charge, ONCE, type RouteCharge } from '../keys/authorization/index.ts';
import type { Route } from './router.ts';

const CHARGES = new WeakMap<Route, Charge>();

/** What a request counts as that a route lets pass: by its `cost`, also against its `limit`. */
export function chargeOf(route: Route): Charge {
  const { host, path, methods, mcp, limit, cost = 1 } = route;
  if (limit === undefined && cost === 1) return ONCE;
  let charge = CHARGES.get(route);
  if (!charge) {
    const told = JSON.stringify([host, path, methods?.toSorted() ?? null, mcp ?? null]);
    const id = createHash('sha256').update(told).digest('base64url').slice(0, 22);
    charge = { requests: 1, cost, routes: limit === undefined ? [] : [{ route: id, limit, cost }] };
    CHARGES.set(route, charge);
  }
  return charge;
}

/** What a request counts as that several routes let pass: what counts most. */
export function mostOfCharges(charges: readonly Charge[]): Charge {
  const different = [...new Set(charges)];
  if (different.length < 2) return different[0] ?? ONCE;
  const cost = Math.max(...different.map((charge) => charge.cost));
  return { requests: 1, cost, routes: different.flatMap(({ routes }) => routes) };
}

/** What requests count as that come as one; `ONCE` for none. */
export function sumOfCharges(charges: readonly Charge[]): Charge {
  if (charges.length < 2) return charges[0] ?? ONCE;
  const routes = new Map<string, RouteCharge>();
  for (const each of charges.flatMap((charge) => charge.routes))
    routes.set(each.route, { ...each, cost: each.cost + (routes.get(each.route)?.cost ?? 0) });
  const total = (of: 'requests' | 'cost') => charges.reduce((sum, charge) => sum + charge[of], 0);
  return { requests: total('requests'), cost: total('cost'), routes: [...routes.values()] };
}
