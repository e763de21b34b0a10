import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import { GraphQLError } from 'graphql';
import { type CallerContext, naiveCheck, ready, resolvers, typeDefs } from './common.ts';

const check = naiveCheck();
const server = new ApolloServer<CallerContext>({ typeDefs, resolvers });
const { url } = await startStandaloneServer(server, {
  listen: { port: 0, host: '127.0.0.1' },
  context: async ({ req }) => {
    const caller = check(req.headers.authorization);
    if (!caller) throw new GraphQLError('Unauthorized', { extensions: { http: { status: 401 } } });
    return { caller };
  },
});
ready(Number(new URL(url).port));
