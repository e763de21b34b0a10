import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'better-sqlite3';
import { GraphQLError } from 'graphql';
import { digestOf, naivePath } from '../stores.ts';
import { firstItems, resizeItem } from '../items.ts';

/** The folder with the stores. */
export const folder = process.argv[2]!;

/** The caller that the naive check finds. */
export interface Caller {
  id: string;
  name: string;
  roles: string[];
}

export interface CallerContext {
  caller: Caller;
}

export const typeDefs = `
  enum Role { ADMIN VIEWER CONNECT GUEST }
  type Me { id: ID! name: String! roles: [Role!]! }
  type Item { id: ID! name: String! size: Int! ok: Boolean! }
  type Query { me: Me! items(first: Int!): [Item!]! drafts: [Item!] }
  type Mutation { resizeItem(id: ID!, size: Int!): Item! }
`;

export const resolvers = {
  Query: {
    me: (_parent: unknown, _args: unknown, context: CallerContext) => context.caller,
    items: (_parent: unknown, { first }: { first: number }) => firstItems(first),
    drafts: refuse,
  },
  Mutation: {
    resizeItem: (_parent: unknown, { id, size }: { id: string; size: number }) => resizeItem(id, size),
  },
};

/** The result of a resolver for a caller without the permission. */
export function refuse(): never {
  throw new GraphQLError('This key lacks ITEM:DELETE_ANY.', { extensions: { code: 'FORBIDDEN' } });
}

/** The check that most people would write: hash the token with SHA-256, and SELECT it on each request. */
export function naiveCheck(): (authorization: string | null | undefined) => Caller | undefined {
  const db = new Database(naivePath(folder), { readonly: true });
  const select = db.prepare<[string], { id: string; name: string; roles: string }>(
    'select id, name, roles from keys where digest = ?',
  );
  return (authorization) => {
    const token = authorization?.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : undefined;
    const row = token && select.get(digestOf(token));
    return row ? { id: row.id, name: row.name, roles: JSON.parse(row.roles) as string[] } : undefined;
  };
}

/** Reports the port to the parent process. */
export function ready(port: number): void {
  process.stdout.write(`listening on ${port}\n`);
}

export function listenAndReport(server: Server): void {
  server.listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port));
}
