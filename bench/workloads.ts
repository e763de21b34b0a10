import type { BenchKey } from './stores.ts';

export type Workload = 'me' | 'items' | 'constant';

export const ITEMS = Array.from({ length: 20 }, (_, index) => ({
  id: `item-${index}`,
  name: `Item number ${index}`,
  size: index * 1024,
  ok: index % 3 !== 0,
}));

/** The response of a server without GraphQL. */
export const CONSTANT = { ok: true };

const QUERIES = { me: '{ me { id name roles } }', items: '{ items { id name size ok } }' };

/** The body of the request, as text; undefined for a GET. */
export function bodyOf(workload: Workload): string | undefined {
  return workload === 'constant' ? undefined : JSON.stringify({ query: QUERIES[workload] });
}

export function pathOf(workload: Workload): string {
  return workload === 'constant' ? '/' : '/graphql';
}

/** The expected response. */
export function expectedOf(workload: Workload, { id, name, roles }: BenchKey): unknown {
  return { me: { data: { me: { id, name, roles } } }, items: { data: { items: ITEMS } }, constant: CONSTANT }[workload];
}
