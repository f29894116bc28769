"""Creates in numbers while replicas are killed and paused, and what etcd's own history says of it afterwards."""
