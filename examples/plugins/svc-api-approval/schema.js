export const typeDefs = `
  extend type Query { deploys: [Deploy!] @cost(weight: 20) @listSize(assumedSize: 100) }
  extend type Mutation {
    askForDeploy("Which version, and where to." what: String!): Deploy @cost(weight: 40)
    approveDeploy("Its id." id: ID!): Deploy @cost(weight: 40)
  }
  "A deploy that was asked for."
  type Deploy {
    "Its id." id: ID!
    "Which version, and where to." what: String!
    "The key that asked for it." asker: String!
    "The key that approved it." approver: String
  }
`;
