import type { SchemaHook } from 'svc-api';

/** Named in package.json: "oclif": { "hooks": { "svc-api:schema": "./hook.js" } }. */
const hook: SchemaHook = async () => ({
  resources: ['BACKUP'],
  typeDefs: 'extend type Query { backups: [String!] @requires(resource: BACKUP, action: READ_ANY) }',
  resolvers: { Query: { backups: () => ['sda-1'] } },
});
export default hook;
