import type { DocumentNode } from 'graphql';
import type { Resolvers, SchemaExtension } from './extension.ts';
import { documentsOf } from './requirements.ts';

/** A host's part of the schema, read. */
export interface HostPart {
  /** Whose it is, as errors say it. */
  name: string;
  documents: DocumentNode[];
  resolvers: Resolvers;
}

/** Reads a host's part, and loads its resolvers. @throws Error that names the host and what is wrong */
export async function readHostPart({ typeDefs = [], resolvers = {}, name }: SchemaExtension): Promise<HostPart> {
  const owner = name ?? 'the host';
  return {
    name: owner,
    documents: readTypeDefs([typeDefs].flat() as (string | DocumentNode)[], owner),
    resolvers: readResolvers(typeof resolvers === 'function' ? await resolvers() : resolvers, owner),
  };
}

function readTypeDefs(typeDefs: (string | DocumentNode)[], owner: string): DocumentNode[] {
  try {
    return documentsOf(typeDefs);
  } catch (error) {
    throw new Error(`The typeDefs of ${owner} are invalid: ${(error as Error).message}`, { cause: error });
  }
}

function readResolvers(resolvers: unknown, owner: string): Resolvers {
  if (typeof resolvers === 'object' && resolvers !== null && !Array.isArray(resolvers)) return resolvers as Resolvers;
  throw new Error(`The resolvers of ${owner} must be one object, by type and field, or a function that returns it.`);
}
