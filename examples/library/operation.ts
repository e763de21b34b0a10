import { Args, Command } from '@oclif/core';
import { clientFlags, type Feature, withClient } from 'svc-api/feature';

/** An operation of a plugin, with its root field. */
const feature = {
  name: 'svc-api-deploy',
  operations: {
    approveDeploy: {
      root: 'Mutation',
      needs: 'SERVICES:UPDATE_ANY',
      does: 'Approves a deploy.',
      run: async (_keys, { id }: { id: string }) => ({ id, approved: true }),
    },
  },
  schema: async () => ({
    typeDefs: `
      extend type Mutation { approveDeploy("Which deploy." id: ID!): Approval }
      "A deploy that was approved."
      type Approval { "Which deploy." id: ID! "True once it is." approved: Boolean! }`,
  }),
  remote: async () => ({
    approveDeploy: async (server, input: { id: string }) => {
      const document = 'mutation ($id: ID!) { approveDeploy(id: $id) { id approved } }';
      return ((await server.ask(document, input)) as { approveDeploy: { id: string; approved: boolean } })
        .approveDeploy;
    },
  }),
} satisfies Feature;

/** Its command, on a key store and, with `--server`, on a running server. */
export default class ApproveDeploy extends Command {
  static override enableJsonFlag = true;
  static override args = { id: Args.string({ required: true }) };
  static override flags = clientFlags;

  async run(): Promise<object> {
    const { args, flags } = await this.parse(ApproveDeploy);
    return withClient(this.config, flags, (client) => client.of(feature).approveDeploy(args));
  }
}
