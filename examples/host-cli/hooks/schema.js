/**
 * The host's own part of the schema. Its resolvers are loaded by `acme serve` only.
 *
 * @type {import('svc-api').SchemaHook}
 */
export default async function schema() {
  return {
    resources: ['BACKUP'],
    typeDefs: `
      "A backup of acme's data."
      type Backup {
        "Its id."
        id: ID!
        "The name of the key that requested it; null for nightly backups."
        requestedBy: String
      }
      extend type Query {
        "All backups."
        backups: [Backup!]! @requires(resource: BACKUP, action: READ_ANY)
      }
      extend type Mutation {
        "Creates a backup now."
        createBackup: Backup! @requires(resource: BACKUP, action: CREATE_ANY)
      }
    `,
    resolvers: async () => (await import('../resolvers.js')).resolvers,
  };
}
